// The process tree with what each used: its rows, in the order of a walk.

import { forEachRow, type Choice } from './sums.ts';
import type { Recording } from './recording.ts';

export interface ProcessRow {
  process: number;
  depth: number;
  children: number;
  threads: number[];
  parts: number[]; // of the chosen value, each thread's
  self: number; // and all together
  rss: number; // at the end of what is known; 0: it has ended
  peakRss: number;
  heapPeak: number;
  heapLive: number;
  hasHeap: boolean;
}

/** Sums of a choice by thread. */
export function byThread(r: Recording, choice: Choice): { value: Float64Array; count: Float64Array } {
  const value = new Float64Array(r.head.threads.length);
  const count = new Float64Array(r.head.threads.length);
  if (!choice.range && !choice.threads && r.head.sums) {
    for (const [event, thread, n, v] of r.head.sums) {
      if (!choice.events[event]) continue;
      value[thread] += v;
      count[thread] += n;
    }
    return { value, count };
  }
  forEachRow(r, choice, (_s, _c, _e, thread, n, v) => {
    value[thread] += v;
    count[thread] += n;
  });
  return { value, count };
}

export function family(r: Recording, choice: Choice): ProcessRow[] {
  const { processes, threads } = r.head;
  const sums = byThread(r, { ...choice, threads: null });
  const rows: ProcessRow[] = processes.map((p, process) => ({
    process, depth: 0, children: 0, threads: [], parts: [], self: 0, rss: 0, peakRss: p.max_rss, heapPeak: 0, heapLive: 0, hasHeap: false,
  }));
  threads.forEach((t, i) => {
    rows[t.process].threads.push(i);
    rows[t.process].parts.push(sums.value[i]);
    rows[t.process].self += sums.value[i];
  });
  for (const h of r.head.heaps) {
    const row = rows[h.process];
    if (!row) continue;
    row.hasHeap = true;
    row.heapPeak = Math.max(row.heapPeak, h.peak);
    row.heapLive += h.live;
  }
  for (const c of r.curves) {
    if (c.process < 0 || c.thread >= 0 || !c.values.length) continue;
    const row = rows[c.process];
    const last = c.values[c.values.length - 1];
    if (c.name === 'rss') {
      for (const v of c.values) row.peakRss = Math.max(row.peakRss, v);
      row.rss = processes[c.process].ended ? 0 : last;
    } else if (c.name === 'heap') {
      // While it runs the curve is all there is.
      for (const v of c.values) row.heapPeak = Math.max(row.heapPeak, v);
      if (!row.hasHeap) row.heapLive = last;
      row.hasHeap = true;
    }
  }
  return walk(rows, processes.map((p) => p.parent));
}

function walk(rows: ProcessRow[], parents: number[]): ProcessRow[] {
  const children: number[][] = rows.map(() => []);
  const out: ProcessRow[] = [];
  const roots: number[] = [];
  parents.forEach((parent, i) => (parent >= 0 && parent < i ? children[parent] : roots).push(i));
  const todo = roots.reverse().map((i) => [i, 0] as [number, number]);
  for (let next; (next = todo.pop()); ) {
    const [i, depth] = next;
    out.push({ ...rows[i], depth, children: children[i].length });
    for (const child of children[i].reverse()) todo.push([child, depth + 1]);
  }
  return out;
}

/** "exit 0", "SIGKILL", "running". */
export function howItEnded(p: { ended: boolean; status?: number; signal?: string }, live: boolean): string {
  if (!p.ended) return live ? 'running' : 'still ran';
  if (p.signal) return `SIG${p.signal}`;
  return p.status === undefined ? 'ended' : `exit ${p.status}`;
}
