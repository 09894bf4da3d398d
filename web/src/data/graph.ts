// A call graph to look at: the heaviest functions and calls, in columns from callers to callees.

import { edges as allEdges, type Edge } from './sandwich.ts';
import type { FunctionRow, Sums } from './sums.ts';

export interface Box {
  symbol: number;
  row: FunctionRow;
  column: number;
  x: number;
  y: number;
  hidden: number; // calls to and from functions that are left out
}

export interface Arrow extends Edge {
  path: string;
  back: boolean; // against the direction: recursion
}

export interface Drawing {
  boxes: Box[];
  arrows: Arrow[];
  width: number;
  height: number;
}

export const BOX_WIDTH = 208;
export const BOX_HEIGHT = 46;
const COLUMN = BOX_WIDTH + 56;
const LEAST = 0.005; // of the whole: smaller functions are not drawn, if larger ones are there
const ROW = BOX_HEIGHT + 16;

/** The heaviest functions; around one, those within two calls of it. */
export function choose(rows: FunctionRow[], edges: Edge[], centre: number, most: number): Set<number> {
  if (centre < 0) {
    const heavy = [...rows].sort((a, b) => b.total - a.total).slice(0, most);
    return new Set(heavy.filter((f) => f.total >= LEAST * heavy[0].total).map((f) => f.symbol));
  }
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

/** Columns: each function after its heaviest caller; calls backwards are ignored for this. */
function columns(chosen: Set<number>, edges: Edge[], depth: Map<number, number>): Map<number, number> {
  const order = [...chosen].sort((a, b) => (depth.get(a) ?? 0) - (depth.get(b) ?? 0));
  const rank = new Map(order.map((s, i) => [s, i]));
  const column = new Map<number, number>();
  for (const symbol of order) {
    let at = 0;
    for (const e of edges)
      if (e.to === symbol && rank.get(e.from)! < rank.get(symbol)!) at = Math.max(at, (column.get(e.from) ?? 0) + 1);
    column.set(symbol, at);
  }
  return column;
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

export function draw(sums: Sums, rows: FunctionRow[], centre: number, most: number): Drawing {
  const every = allEdges(sums);
  const chosen = choose(rows, every, centre, most);
  const inside = every.filter((e) => chosen.has(e.from) && chosen.has(e.to) && e.from !== e.to);
  const least = (inside[0]?.value ?? 0) / 400;
  const shown = inside.filter((e) => e.value >= least);
  const column = columns(chosen, shown, depths(sums));
  const boxes = place(rows.filter((f) => chosen.has(f.symbol)), column, shown, every, chosen);
  const at = new Map(boxes.map((b) => [b.symbol, b]));
  const arrows = shown.map((e) => arrow(e, at.get(e.from)!, at.get(e.to)!));
  return {
    boxes,
    arrows,
    width: Math.max(0, ...boxes.map((b) => b.x + BOX_WIDTH)) + 24,
    height: Math.max(0, ...boxes.map((b) => b.y + BOX_HEIGHT)) + 24,
  };
}

/** Within a column near what it is called by, heavy ones first where that leaves a choice. */
function place(rows: FunctionRow[], column: Map<number, number>, shown: Edge[], every: Edge[], chosen: Set<number>): Box[] {
  const byColumn: FunctionRow[][] = [];
  for (const row of rows) (byColumn[column.get(row.symbol) ?? 0] ??= []).push(row);
  const y = new Map<number, number>();
  const boxes: Box[] = [];
  byColumn.forEach((list, c) => {
    const wish = (f: FunctionRow) => {
      let sum = 0;
      let weight = 0;
      for (const e of shown)
        if (e.to === f.symbol && y.has(e.from)) {
          sum += y.get(e.from)! * e.value;
          weight += e.value;
        }
      return weight ? sum / weight : 0;
    };
    const wishes = new Map(list.map((f) => [f.symbol, wish(f)]));
    list.sort((a, b) => wishes.get(a.symbol)! - wishes.get(b.symbol)! || b.total - a.total);
    let next = 12;
    for (const row of list) {
      const top = Math.max(next, wishes.get(row.symbol)! - ((list.length - 1) * ROW) / 2);
      y.set(row.symbol, top);
      next = top + ROW;
      const hidden = every.filter((e) => (e.from === row.symbol) !== (e.to === row.symbol) && !(chosen.has(e.from) && chosen.has(e.to))).length;
      boxes.push({ symbol: row.symbol, row, column: c, x: 12 + c * COLUMN, y: top, hidden });
    }
  });
  return boxes;
}

function arrow(e: Edge, from: Box, to: Box): Arrow {
  const back = to.column <= from.column;
  const x0 = from.x + BOX_WIDTH;
  const y0 = from.y + BOX_HEIGHT / 2;
  const x1 = to.x;
  const y1 = to.y + BOX_HEIGHT / 2;
  const bend = back ? 46 : Math.max(36, (x1 - x0) / 2);
  return { ...e, back, path: `M${x0},${y0} C${x0 + bend},${y0} ${x1 - bend},${y1} ${x1},${y1}` };
}
