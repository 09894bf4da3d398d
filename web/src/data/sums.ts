// What is chosen (events, threads, a range of time) and its sums, by node of the tree and by symbol.

import type { Recording } from './recording.ts';
import type { CallTree, NodeTree } from './tree.ts';

export interface Choice {
  events: Uint8Array; // by event: chosen?
  threads: Uint8Array | null; // by thread; null: all
  range: [number, number] | null; // ns since the start
  waits: boolean; // leaves that say what was waited for
}

export interface Sums {
  tree: NodeTree;
  self: Float64Array; // by node
  total: Float64Array;
  selfCount: Float64Array;
  totalCount: Float64Array;
  value: number;
  count: number;
}

/** Calls `visit` with the rows that are chosen. */
export function forEachRow(
  r: Recording,
  choice: Choice,
  visit: (stack: number, cut: boolean, event: number, thread: number, count: number, value: number,
    bucket: number) => void,
): void {
  const timed = choice.range !== null;
  const rows = timed ? r.times : r.cells;
  const event = rows.event.data;
  const thread = rows.thread.data;
  const stack = rows.stack.data;
  const bucket = rows.bucket.data;
  const from = timed ? Math.floor(choice.range![0] / r.width) : 0;
  const to = timed ? Math.ceil(choice.range![1] / r.width) : 0;
  for (let i = 0; i < rows.length; i++) {
    if (!choice.events[event[i]] || (choice.threads && !choice.threads[thread[i]])) continue;
    if (timed && (bucket[i] < from || bucket[i] >= to)) continue;
    const s = timed ? stack[i] >>> 1 : stack[i];
    visit(s, timed && (stack[i] & 1) === 1, event[i], thread[i], rows.count.data[i],
      rows.value.data[i], timed ? bucket[i] : 0);
  }
}

export function waitEvents(r: Recording): Uint8Array {
  return Uint8Array.from(r.head.events, (e) => (e.name.startsWith('off-cpu') ? 1 : 0));
}

export function sum(tree: CallTree, choice: Choice): Sums {
  tree.update();
  const r = tree.recording;
  const waits = choice.waits ? waitEvents(r) : null;
  // Leaves may be added on the way: rows first, then arrays of the final length.
  const stacks = r.stackParent.length;
  const byStack = new Float64Array(stacks);
  const byStackCount = new Float64Array(stacks);
  const extra: [number, number, number][] = [];
  forEachRow(r, choice, (stack, cut, event, _thread, count, value) => {
    if (cut || (waits && waits[event])) {
      let node = cut ? tree.under(stack) : tree.nodeOf(stack);
      if (waits && waits[event]) node = tree.waiting(node, event);
      extra.push([node, count, value]);
      return;
    }
    byStack[stack] += value;
    byStackCount[stack] += count;
  });
  if (byStack[0] || byStackCount[0]) tree.nodeOf(0);
  const n = tree.length;
  const self = new Float64Array(n);
  const selfCount = new Float64Array(n);
  const nodes = tree.stackNode.data;
  for (let i = 1; i < stacks; i++) {
    self[nodes[i]] += byStack[i];
    selfCount[nodes[i]] += byStackCount[i];
  }
  if (byStack[0] || byStackCount[0]) extra.push([tree.nodeOf(0), byStackCount[0], byStack[0]]);
  for (const [node, count, value] of extra) {
    self[node] += value;
    selfCount[node] += count;
  }
  return addUp(tree, self, selfCount);
}

export function addUp(tree: NodeTree, self: Float64Array, selfCount: Float64Array): Sums {
  const total = self.slice();
  const totalCount = selfCount.slice();
  const parent = tree.parent.data;
  for (let i = self.length - 1; i > 0; i--) {
    total[parent[i]] += total[i];
    totalCount[parent[i]] += totalCount[i];
  }
  return { tree, self, total, selfCount, totalCount, value: total[0], count: totalCount[0] };
}

export interface FunctionRow {
  symbol: number;
  name: string;
  self: number;
  total: number;
  selfCount: number;
  totalCount: number;
}

/** Children in CSR form: those of node n are list[start[n]] ... list[start[n + 1]]. */
export function childrenOf(tree: NodeTree, length: number): { start: Uint32Array; list: Uint32Array } {
  const parent = tree.parent.data;
  const start = new Uint32Array(length + 2);
  for (let i = 1; i < length; i++) start[parent[i] + 2]++;
  for (let i = 1; i < start.length; i++) start[i] += start[i - 1];
  const list = new Uint32Array(Math.max(0, length - 1));
  for (let i = 1; i < length; i++) list[start[parent[i] + 1]++] = i;
  return { start: start.subarray(0, length + 1), list };
}

/** By node: is no caller of it the same function? Those count in totals. */
export function outermost(tree: NodeTree, length: number): Uint8Array {
  const { start, list } = childrenOf(tree, length);
  const out = new Uint8Array(length);
  const open = new Map<number, number>();
  const stack: number[] = [0];
  const cursor: number[] = [start[0]];
  const symbol = tree.symbol.data;
  while (stack.length) {
    const node = stack[stack.length - 1];
    const at = cursor[cursor.length - 1]++;
    if (at < start[node + 1]) {
      const child = list[at];
      const times = open.get(symbol[child]) ?? 0;
      out[child] = times ? 0 : 1;
      open.set(symbol[child], times + 1);
      stack.push(child);
      cursor.push(start[child]);
      continue;
    }
    if (node) open.set(symbol[node], open.get(symbol[node])! - 1);
    stack.pop();
    cursor.pop();
  }
  return out;
}

/** Functions with their own and their whole cost; a function counts once a stack. */
export function functions(sums: Sums): FunctionRow[] {
  const { tree, self, total } = sums;
  const rows = new Map<number, FunctionRow>();
  const outer = outermost(tree, self.length);
  for (let i = 1; i < self.length; i++) {
    if (!total[i] && !sums.totalCount[i]) continue;
    const symbol = tree.symbol.data[i];
    let row = rows.get(symbol);
    if (!row) {
      row = { symbol, name: tree.symbolName(symbol), self: 0, total: 0, selfCount: 0, totalCount: 0 };
      rows.set(symbol, row);
    }
    row.self += self[i];
    row.selfCount += sums.selfCount[i];
    if (outer[i]) {
      row.total += total[i];
      row.totalCount += sums.totalCount[i];
    }
  }
  return [...rows.values()].sort((a, b) => b.total - a.total);
}

export interface LineRow {
  symbol: number;
  file: string;
  line: number;
  self: number;
  total: number;
}

/** Costs of source lines; a line counts once a stack. With a symbol, those of that function. */
export function lines(r: Recording, choice: Choice, only = -1): LineRow[] {
  const stacks = r.stackParent.length;
  const own = new Float64Array(stacks);
  forEachRow(r, choice, (stack, _cut, _e, _t, _c, value) => {
    own[stack] += value;
  });
  const total = own.slice();
  for (let i = stacks - 1; i > 0; i--) total[r.stackParent.data[i]] += total[i];
  const rows = new Map<string, LineRow>();
  const key = (k: number) =>
    `${only < 0 ? r.symbolFile.data[r.stepSymbol.data[k]] : ''}:${r.stepLine.data[k]}`;
  // Frames on the way to the root decide whether a line is met for the first time.
  const above = (stack: number, wanted: string, line: number): boolean => {
    for (let s = r.stackParent.data[stack]; s; s = r.stackParent.data[s]) {
      const frame = r.stackFrame.data[s];
      const first = r.frameFirst.data[frame];
      for (let k = first; k < first + r.frameSteps.data[frame]; k++)
        if (r.stepLine.data[k] === line && counts(k) && key(k) === wanted) return true;
    }
    return false;
  };
  const counts = (k: number) => {
    const symbol = r.stepSymbol.data[k];
    return (only < 0 || symbol === only) && r.stepLine.data[k] > 0 && r.symbolFile.data[symbol] > 0;
  };
  for (let s = 1; s < stacks; s++) {
    if (!total[s]) continue;
    const frame = r.stackFrame.data[s];
    const first = r.frameFirst.data[frame];
    const end = first + r.frameSteps.data[frame];
    for (let k = first; k < end; k++) {
      if (!counts(k)) continue;
      const id = key(k);
      let row = rows.get(id);
      if (!row) {
        const symbol = r.stepSymbol.data[k];
        const file = r.strings[r.symbolFile.data[symbol]];
        rows.set(id, (row = { symbol, file, line: r.stepLine.data[k], self: 0, total: 0 }));
      }
      if (k === end - 1) row.self += own[s];
      if (!above(s, id, row.line)) row.total += total[s];
    }
  }
  return [...rows.values()].sort((a, b) => b.total - a.total);
}
