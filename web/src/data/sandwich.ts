// Who calls a function and what it calls, as trees of their own. Of a recursive function the
// outermost call counts.

import { floats } from './growing.ts';
import { addUp, childrenOf, dense, outermost, type Sums } from './sums.ts';
import { NodeTree } from './tree.ts';

class Building {
  tree: NodeTree;
  self = floats();
  count = floats();

  constructor(sums: Sums, symbol: number) {
    this.tree = new NodeTree(sums.tree.recording, symbol);
    this.add(0, 0, 0);
  }

  add(node: number, value: number, count: number): void {
    while (this.self.length < this.tree.length) {
      this.self.push(0);
      this.count.push(0);
    }
    this.self.data[node] += value;
    this.count.data[node] += count;
  }

  finish(): Sums {
    const n = this.tree.length;
    return addUp(this.tree, this.self.data.slice(0, n), this.count.data.slice(0, n));
  }
}

function calls(sums: Sums, symbol: number): number[] {
  const outer = outermost(sums.tree, sums.self.length);
  const out: number[] = [];
  for (let i = 1; i < sums.self.length; i++)
    if (outer[i] && sums.tree.symbol.data[i] === symbol && sums.total[i]) out.push(i);
  return out;
}

export function callers(sums: Sums, symbol: number): Sums {
  const b = new Building(sums, symbol);
  const { parent, symbol: symbols } = sums.tree;
  for (const call of calls(sums, symbol)) {
    let at = 0;
    for (let n = parent.data[call]; n; n = parent.data[n]) at = b.tree.child(at, symbols.data[n]);
    b.add(at, sums.total[call], sums.totalCount[call]);
  }
  return b.finish();
}

export function callees(sums: Sums, symbol: number): Sums {
  const b = new Building(sums, symbol);
  const { start, list } = childrenOf(sums.tree, sums.self.length);
  const { symbol: symbols, inlined } = sums.tree;
  const todo: [number, number][] = calls(sums, symbol).map((call) => [call, 0]);
  for (let next; (next = todo.pop()); ) {
    const [from, to] = next;
    b.add(to, sums.self[from], sums.selfCount[from]);
    for (let k = start[from]; k < start[from + 1]; k++) {
      const child = list[k];
      if (sums.total[child])
        todo.push([child, b.tree.child(to, symbols.data[child], inlined.data[child])]);
    }
  }
  return b.finish();
}

export interface Edge {
  from: number; // symbols
  to: number;
  value: number;
  count: number; // with everything below
  calls: number; // of counts that are a function's own: each call once
}

const EDGES_MOST = 20_000;
const made = new WeakMap<Sums, Edge[]>();

/** What was spent in calls from one function to another, the heaviest of them first; a pair counts once a stack. */
export function edges(sums: Sums): Edge[] {
  let all = made.get(sums);
  if (!all) made.set(sums, (all = findEdges(sums)));
  return all;
}

/** By node the number of the call that it is, -1 for the outermost; by call a node that is one. */
function numberCalls({ tree, total }: Sums): { of: Int32Array; nodes: number[] } {
  const { of: symbols, symbols: special } = dense(tree, total.length);
  const most = tree.recording.symbolName.length + special.length;
  const numbers = new Map<number, number>();
  const nodes: number[] = [];
  const of = new Int32Array(total.length).fill(-1);
  for (let i = 1; i < total.length; i++) {
    const parent = tree.parent.data[i];
    if (!parent || !total[i]) continue;
    const key = symbols[parent] * most + symbols[i];
    let number = numbers.get(key);
    if (number === undefined) {
      numbers.set(key, (number = nodes.length));
      nodes.push(i);
    }
    of[i] = number;
  }
  return { of, nodes };
}

function findEdges(sums: Sums): Edge[] {
  const { tree, total } = sums;
  const { start, list } = childrenOf(tree, total.length);
  const { of, nodes } = numberCalls(sums);
  const open = new Uint32Array(nodes.length);
  const [value, count, calls] = Array.from({ length: 3 }, () => new Float64Array(nodes.length));
  const path: number[] = [0];
  const cursor: number[] = [start[0]];
  while (path.length) {
    const node = path[path.length - 1];
    const at = cursor[cursor.length - 1]++;
    if (at >= start[node + 1]) {
      if (of[node] >= 0) open[of[node]]--;
      path.pop();
      cursor.pop();
      continue;
    }
    const child = list[at];
    if (!total[child]) continue;
    const call = of[child];
    if (call >= 0) {
      calls[call] += sums.selfCount[child];
      if (!open[call]++) {
        value[call] += total[child];
        count[call] += sums.totalCount[child];
      }
    }
    path.push(child);
    cursor.push(start[child]);
  }
  return heaviest(value).map((i) => ({ from: tree.symbol.data[tree.parent.data[nodes[i]]], to: tree.symbol.data[nodes[i]],
    value: value[i], count: count[i], calls: calls[i] }));
}

/** Numbers of the heaviest, in their order: to sort a million takes seconds, and nobody looks so far. */
function heaviest(value: Float64Array): number[] {
  const least = value.slice().sort()[Math.max(0, value.length - EDGES_MOST)];
  const out: number[] = [];
  for (let i = 0; i < value.length && out.length < 2 * EDGES_MOST; i++) if (value[i] >= least) out.push(i);
  return out.sort((a, b) => value[b] - value[a]);
}
