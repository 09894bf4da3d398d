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
  if (!timed) r.code();
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
  if (choice.range || waits)
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
  else addCells(r, choice, byStack, byStackCount);
  if (byStack[0] || byStackCount[0]) extra.push([tree.nodeOf(0), byStackCount[0], byStack[0]]);
  const n = tree.length;
  const self = new Float64Array(n);
  const selfCount = new Float64Array(n);
  const nodes = tree.stackNode.data;
  const asked = r.symbolRole.length > 0 && r.head.events.every((e, i) => !choice.events[i] || e.name.startsWith('heap:'));
  for (let i = 1; i < stacks; i++) {
    if (!byStack[i] && !byStackCount[i]) continue;
    const node = asked ? tree.asker(nodes[i]) : nodes[i];
    self[node] += byStack[i];
    selfCount[node] += byStackCount[i];
  }
  for (const [node, count, value] of extra) {
    self[node] += value;
    selfCount[node] += count;
  }
  return addUp(tree, self, selfCount);
}

/** The loop that millions of cells go through. */
function addCells(r: Recording, choice: Choice, value: Float64Array, count: Float64Array): void {
  const { cells } = r;
  const n = cells.length;
  const { events, threads } = choice;
  const event = cells.event.data;
  const thread = cells.thread.data;
  const stack = cells.stack.data;
  const values = cells.value.data;
  const counts = cells.count.data;
  for (let i = 0; i < n; i++) {
    if (!events[event[i]] || (threads && !threads[thread[i]])) continue;
    value[stack[i]] += values[i];
    count[stack[i]] += counts[i];
  }
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

export interface Children {
  start: Uint32Array;
  list: Uint32Array;
}

const children = new WeakMap<NodeTree, { length: number; generation: number; of: Children; outer: Uint8Array | null }>();

function known(tree: NodeTree, length: number) {
  let found = children.get(tree);
  if (!found || found.length !== length || found.generation !== tree.generation) {
    found = { length, generation: tree.generation, of: makeChildren(tree, length), outer: null };
    children.set(tree, found);
  }
  return found;
}

/** Children in CSR form: those of node n are list[start[n]] ... list[start[n + 1]]. */
export function childrenOf(tree: NodeTree, length: number): Children {
  return known(tree, length).of;
}

function makeChildren(tree: NodeTree, length: number): Children {
  const parent = tree.parent.data;
  const start = new Uint32Array(length + 2);
  for (let i = 1; i < length; i++) start[parent[i] + 2]++;
  for (let i = 1; i < start.length; i++) start[i] += start[i - 1];
  const list = new Uint32Array(Math.max(0, length - 1));
  for (let i = 1; i < length; i++) list[start[parent[i] + 1]++] = i;
  return { start: start.subarray(0, length + 1), list };
}

/** Symbols as numbers from 0 up: those that are no function stand after those that are. */
export function dense(tree: NodeTree, length: number): { of: Uint32Array; symbols: number[] } {
  const functions = tree.recording.symbolName.length;
  const special = new Map<number, number>();
  const symbols: number[] = [];
  const of = new Uint32Array(length);
  for (let i = 0; i < length; i++) {
    const symbol = tree.symbol.data[i];
    if (symbol < functions) of[i] = symbol;
    else {
      let number = special.get(symbol);
      if (number === undefined) {
        special.set(symbol, (number = functions + symbols.length));
        symbols.push(symbol);
      }
      of[i] = number;
    }
  }
  return { of, symbols };
}

/** By node: is no caller of it the same function? Those count in totals. */
export function outermost(tree: NodeTree, length: number): Uint8Array {
  const cache = known(tree, length);
  if (cache.outer) return cache.outer;
  const { start, list } = cache.of;
  const { of, symbols } = dense(tree, length);
  const open = new Uint32Array(tree.recording.symbolName.length + symbols.length);
  const out = new Uint8Array(length);
  const cursor = start.slice(0, length);
  for (let node = 0; ; ) {
    if (cursor[node] < start[node + 1]) {
      node = list[cursor[node]++];
      if (!open[of[node]]++) out[node] = 1;
      continue;
    }
    if (!node) break;
    open[of[node]]--;
    node = tree.parent.data[node];
  }
  return (cache.outer = out);
}

/** Functions with their own and their whole cost; a function counts once a stack. */
export function functions(sums: Sums): FunctionRow[] {
  const { tree, self, total, selfCount, totalCount } = sums;
  const length = self.length;
  const outer = outermost(tree, length);
  const { of, symbols } = dense(tree, length);
  const known = tree.recording.symbolName.length;
  const columns = Array.from({ length: 4 }, () => new Float64Array(known + symbols.length));
  for (let i = 1; i < length; i++) {
    if (!total[i] && !totalCount[i]) continue;
    const at = of[i];
    columns[0][at] += self[i];
    columns[1][at] += selfCount[i];
    if (!outer[i]) continue;
    columns[2][at] += total[i];
    columns[3][at] += totalCount[i];
  }
  const rows: FunctionRow[] = [];
  for (let i = 0; i < known + symbols.length; i++) {
    if (!columns[2][i] && !columns[3][i]) continue;
    const symbol = i < known ? i : symbols[i - known];
    rows.push({ symbol, name: tree.symbolName(symbol), self: columns[0][i], selfCount: columns[1][i],
      total: columns[2][i], totalCount: columns[3][i] });
  }
  return rows.sort((a, b) => b.total - a.total);
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
  r.code();
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
