// Who calls a function and what it calls, as trees of their own. Of a recursive function the
// outermost call counts.

import { floats } from './growing.ts';
import { addUp, childrenOf, outermost, type Sums } from './sums.ts';
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

/** What was spent in calls from one function to another; a pair counts once a stack. */
export function edges(sums: Sums): Edge[] {
  const { tree, total } = sums;
  const all = new Map<string, Edge>();
  const { start, list } = childrenOf(tree, total.length);
  const open = new Map<string, number>();
  const symbol = tree.symbol.data;
  const path: number[] = [0];
  const cursor: number[] = [start[0]];
  const key = (node: number) => `${symbol[tree.parent.data[node]]}>${symbol[node]}`;
  while (path.length) {
    const node = path[path.length - 1];
    const at = cursor[cursor.length - 1]++;
    if (at < start[node + 1]) {
      const child = list[at];
      if (!total[child]) continue;
      if (node) enter(child);
      path.push(child);
      cursor.push(start[child]);
      continue;
    }
    if (node && tree.parent.data[node]) open.set(key(node), open.get(key(node))! - 1);
    path.pop();
    cursor.pop();
  }
  return [...all.values()].sort((a, b) => b.value - a.value);

  function enter(child: number): void {
    const id = key(child);
    const times = open.get(id) ?? 0;
    open.set(id, times + 1);
    let edge = all.get(id);
    if (!edge)
      all.set(id, (edge = { from: symbol[tree.parent.data[child]], to: symbol[child], value: 0, count: 0, calls: 0 }));
    edge.calls += sums.selfCount[child];
    if (times) return;
    edge.value += total[child];
    edge.count += sums.totalCount[child];
  }
}
