// A call graph to look at: which functions and calls it shows. The heaviest; and of functions that only
// lead from one to the next, one box for all of them, so that the work stands beside its causes.

import { place, type Drawing } from './graph_layout.ts';
import { edges as allEdges, type Edge } from './sandwich.ts';
import type { FunctionRow, Sums } from './sums.ts';

/** A box to be: a function, or a chain of them that is folded into one. */
export interface Node {
  id: number; // its symbol; of a chain below -1, which is none
  members: FunctionRow[]; // outermost first
  row: FunctionRow; // of the only one, or of the outermost
  hidden: number; // calls to and from functions that are left out
}

const LEAST = 0.01; // of the whole: smaller functions are not drawn, if larger ones are there
const CANDIDATES = 4; // times as many as boxes are looked at, since chains are folded
const LEADS = 0.9; // of both ends that a call of a chain carries at least
const WORKS = 0.02; // of the whole: who does as much itself is no mere link
const FOLDS = 2; // functions that are worth a box for all of them

export function draw(sums: Sums, rows: FunctionRow[], centre: number, most: number, fold: boolean): Drawing {
  const every = allEdges(sums);
  const chosen = centre < 0 ? heaviest(rows, fold ? most * CANDIDATES : most) : around(every, centre, most);
  const list = rows.filter((f) => chosen.has(f.symbol));
  const chains = fold && centre < 0 ? findChains(list, within(every, chosen), sums.value) : [];
  const nodes = [...asNodes(list, chains)].sort((a, b) => b.row.total - a.row.total).slice(0, most);
  const at = new Map(nodes.flatMap((n) => n.members.map((f) => [f.symbol, n] as const)));
  for (const e of every) {
    const [from, to] = [at.get(e.from), at.get(e.to)];
    if (from && !to) from.hidden++;
    if (to && !from) to.hidden++;
  }
  return place(nodes, joined(every, at), depths(sums));
}

function heaviest(rows: FunctionRow[], most: number): Set<number> {
  const heavy = [...rows].sort((a, b) => b.total - a.total).slice(0, most);
  return new Set(heavy.filter((f) => f.total >= LEAST * heavy[0].total).map((f) => f.symbol));
}

/** A function and those within two calls of it. */
function around(edges: Edge[], centre: number, most: number): Set<number> {
  const chosen = new Set([centre]);
  for (let round = 0; round < 2; round++) {
    const near = edges.filter((e) => chosen.has(e.from) !== chosen.has(e.to)).slice(0, most / 2);
    for (const e of near) {
      if (chosen.size >= most) break;
      chosen.add(e.from);
      chosen.add(e.to);
    }
  }
  return chosen;
}

function within(edges: Edge[], chosen: Set<number>): Edge[] {
  return edges.filter((e) => chosen.has(e.from) && chosen.has(e.to) && e.from !== e.to);
}

/** Runs of functions to fold: each hands nearly all on to the next, which has nearly all from it. */
function findChains(rows: FunctionRow[], edges: Edge[], whole: number): FunctionRow[][] {
  const row = new Map(rows.map((f) => [f.symbol, f]));
  const next = new Map<number, number>();
  const before = new Set<number>();
  for (const e of edges) {
    if (e.value < LEADS * row.get(e.from)!.total || e.value < LEADS * row.get(e.to)!.total || next.has(e.from) || before.has(e.to)) continue;
    next.set(e.from, e.to);
    before.add(e.to);
  }
  const chains: FunctionRow[][] = [];
  for (const first of rows) {
    if (before.has(first.symbol)) continue;
    let run: FunctionRow[] = [];
    const finish = () => {
      if (run.length >= FOLDS) chains.push(run);
      run = [];
    };
    // The last of a chain is where it leads to, and stays.
    for (let at = first.symbol; next.has(at); at = next.get(at)!) {
      if (row.get(at)!.self < WORKS * whole) run.push(row.get(at)!);
      else finish();
    }
    finish();
  }
  return chains;
}

function* asNodes(rows: FunctionRow[], chains: FunctionRow[][]): Iterable<Node> {
  const folded = new Set(chains.flat());
  for (const row of rows) if (!folded.has(row)) yield { id: row.symbol, members: [row], row, hidden: 0 };
  for (const members of chains) yield { id: -2 - members[0].symbol, members, row: members[0], hidden: 0 };
}

/** Calls between boxes: those of a chain's functions as its own; small ones are left out. */
function joined(every: Edge[], at: Map<number, Node>): Edge[] {
  const all = new Map<string, Edge>();
  for (const e of every) {
    const from = at.get(e.from)?.id;
    const to = at.get(e.to)?.id;
    if (from === undefined || to === undefined || from === to) continue;
    const one = all.get(`${from}>${to}`);
    if (!one) all.set(`${from}>${to}`, { ...e, from, to });
    else {
      one.value += e.value;
      one.count += e.count;
      one.calls += e.calls;
    }
  }
  const list = [...all.values()].sort((a, b) => b.value - a.value);
  return list.filter((e) => e.value >= list[0].value / 400);
}

/** The mean depth at which each function stands, by weight. */
function depths(sums: Sums): Map<number, number> {
  const weight = new Map<number, [number, number]>();
  const { tree, total } = sums;
  for (let i = 1; i < total.length; i++) {
    if (!total[i]) continue;
    const sum = weight.get(tree.symbol.data[i]) ?? [0, 0];
    sum[0] += tree.depth.data[i] * total[i];
    sum[1] += total[i];
    weight.set(tree.symbol.data[i], sum);
  }
  return new Map([...weight].map(([symbol, [a, b]]) => [symbol, a / b]));
}
