// What each thread did over time: intervals (running, or waiting for what) and, from the stacks of
// neighbours, the boxes of a flame chart.

import type { Recording } from './recording.ts';
import { waitEvents } from './sums.ts';
import type { CallTree } from './tree.ts';

export interface Intervals {
  start: Float64Array; // ns since the recording's start, in order
  end: Float64Array;
  event: Uint16Array;
  stack: Uint32Array; // twice its number, as in the rows
  length: number;
}

/** Boxes of one depth, from left to right. */
export interface Boxes {
  start: ArrayLike<number>;
  end: ArrayLike<number>;
  id: ArrayLike<number>; // of what they stand for
  many?: ArrayLike<number>; // absent: one each
}

export interface ChartLevel extends Boxes {
  start: number[];
  end: number[];
  id: number[]; // nodes
}

/**
 * Intervals of every thread, from the rows of events that count time. A row of samples stands
 * for the time before the end of its bucket; a wait begins in its bucket. No interval begins
 * before the one before it ends.
 */
export function intervals(r: Recording): Map<number, Intervals> {
  // What a thread was doing; time that others waited for it, or that its calls took, is no state of it.
  const timed = Uint8Array.from(r.head.events, (e) => (e.unit === 'ns' && e.name !== 'waited-for' && e.name !== 'calls' ? 1 : 0));
  const { event, thread, bucket } = r.times;
  const waits = waitEvents(r);
  const lists = new Map<number, number[]>();
  for (let i = 0; i < r.times.length; i++) {
    if (!timed[event.data[i]]) continue;
    let list = lists.get(thread.data[i]);
    if (!list) lists.set(thread.data[i], (list = []));
    list.push(i);
  }
  const out = new Map<number, Intervals>();
  for (const [id, rows] of lists) {
    rows.sort((a, b) => bucket.data[a] - bucket.data[b] || waits[event.data[a]] - waits[event.data[b]] || a - b);
    out.set(id, place(rows, r, waits));
  }
  return out;
}

function place(rows: number[], r: Recording, waits: Uint8Array): Intervals {
  const n = rows.length;
  const { event, bucket, stack, value } = r.times;
  const out: Intervals = { start: new Float64Array(n), end: new Float64Array(n), event: new Uint16Array(n), stack: new Uint32Array(n), length: n };
  let last = 0;
  for (let i = 0; i < n; ) {
    const b = bucket.data[rows[i]];
    const waiting = waits[event.data[rows[i]]];
    let k = i;
    let sum = 0;
    for (; k < n && bucket.data[rows[k]] === b && waits[event.data[rows[k]]] === waiting; k++) sum += value.data[rows[k]];
    const end = Math.max(last, waiting ? b * r.width + sum : (b + 1) * r.width);
    const from = Math.max(last, waiting ? b * r.width : (b + 1) * r.width - sum);
    for (let at = from; i < k; i++) {
      out.start[i] = at;
      at += sum ? ((end - from) * value.data[rows[i]]) / sum : 0;
      out.end[i] = at;
      out.event[i] = event.data[rows[i]];
      out.stack[i] = stack.data[rows[i]];
    }
    last = end;
  }
  return out;
}

/** Boxes by depth; neighbours with the same callers share theirs. */
export function chart(tree: CallTree, list: Intervals, gap: number): ChartLevel[] {
  const levels: ChartLevel[] = [];
  let open: number[] = []; // nodes of the row before, outermost first
  let last = -Infinity;
  for (let i = 0; i < list.length; i++) {
    const path = tree.path(tree.nodeOf(list.stack[i] >>> 1));
    const joined = list.start[i] - last <= gap;
    let same = 0;
    if (joined) while (same < path.length && same < open.length && path[same] === open[same]) same++;
    for (let d = 0; d < path.length; d++) {
      const level = (levels[d] ??= { start: [], end: [], id: [] });
      if (d < same) level.end[level.end.length - 1] = list.end[i];
      else {
        level.start.push(list.start[i]);
        level.end.push(list.end[i]);
        level.id.push(path[d]);
      }
    }
    open = path;
    last = list.end[i];
  }
  return levels;
}

/** The first item of ordered ends that lies after `x`. */
export function firstEndAfter(ends: ArrayLike<number>, x: number, from = 0): number {
  let low = from;
  let high = ends.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle] > x) high = middle;
    else low = middle + 1;
  }
  return low;
}
