// What can be counted: each event of a recording, and groups of them that belong together.

import type { Recording } from './recording.ts';

export interface ValueKind {
  id: string;
  label: string;
  group: 'Time' | 'Memory' | 'Events';
  unit: 'ns' | 'bytes' | 'count';
  /** Many of what its counts count. */
  noun: string;
  events: number[];
  timed: boolean; // rows over time exist
  hint: string;
}

const HEAP: Record<string, [string, string, string]> = {
  'heap:live': ['Heap live at the end', 'blocks', 'Bytes that were still allocated at the end: leaks, and what is kept on purpose'],
  'heap:peak': ['Heap at each peak', '', 'Bytes held when each process was at its own peak'],
  'heap:tree-peak': ['Heap at the peak', '', 'Bytes held when all processes together were at their peak'],
  'heap:allocated': ['Heap allocated', 'allocations', 'All bytes that were ever allocated'],
  'heap:temporary': ['Heap temporary', 'allocations', 'Allocations freed before the next one of their thread'],
  'heap:released': ['Freed by others', 'frees', 'Blocks that another thread freed than had allocated them'],
};

/** As other tools' heap profiles call them. */
const FOREIGN: typeof HEAP = {
  inuse_space: ['Heap live', 'blocks', 'Bytes that were allocated when the profile was written'],
  alloc_space: ['Heap allocated', 'allocations', 'All bytes that were ever allocated'],
};

/** While processes run. */
const NOW: typeof HEAP = {
  'heap:live': ['Heap live now', 'blocks', 'Bytes that are allocated at this moment'],
};

/** Do counts belong to the function itself? A call is one of its callee, not of all callers above it. */
export function countsItself(noun: string): boolean {
  return noun === 'calls';
}

/** Events that are numbered: peaks and snapshots. */
function numbered(name: string): [string, string, string] | undefined {
  const [, what, number] = /^heap:(peak|snapshot)-(\d+)$/.exec(name) ?? [];
  if (!what) return undefined;
  return what === 'peak' ? [`Heap at peak ${number}`, '', `Bytes held at peak ${number} of all processes together`]
    : [`Heap snapshot ${number}`, 'blocks', `Bytes held when snapshot ${number} was taken`];
}

/** Events of sonde's own that are neither CPU time, nor waits, nor the heap's. */
const OTHERS: Record<string, [string, string, string]> = {
  calls: ['Traced calls', 'calls', 'Time from each call to its return, of every call that was traced'],
  'waited-for': ['Waited for', 'waits', 'Time that others waited for a lock, charged to who held it'],
};

const WAITS: Record<string, string> = {
  'off-cpu:sleep': 'Sleeping',
  'off-cpu:lock': 'Waiting for locks',
  'off-cpu:io': 'Waiting for I/O',
  'off-cpu:queue': 'Waiting for a CPU',
  'off-cpu:gil': 'Waiting for the GIL',
  'off-cpu:child': 'Waiting for a child',
  'off-cpu:other': 'Waiting for something else',
};

export function waitLabel(event: string): string {
  return WAITS[event] ?? event.replace(/^off-cpu:/, 'waiting: ');
}

export function valueKinds(r: Recording): ValueKind[] {
  const kinds: ValueKind[] = [];
  const events = r.head.events;
  const filled = (i: number) => events[i].value > 0 || events[i].samples > 0;
  const timed = new Set<number>();
  for (let i = 0, last = -1; i < r.times.length; i++)
    if (r.times.event.data[i] !== last) timed.add((last = r.times.event.data[i]));
  const cpu = events.findIndex((e) => e.name === 'cpu');
  const waits = events.map((_, i) => i).filter((i) => events[i].name.startsWith('off-cpu') && filled(i));
  const time = (id: string, label: string, list: number[], hint: string) =>
    kinds.push({ id, label, group: 'Time', unit: 'ns', noun: 'samples', events: list, hint,
      timed: list.some((e) => timed.has(e)) });
  if (cpu >= 0) time('cpu', 'CPU time', [cpu], 'Time on a CPU');
  if (cpu >= 0 && waits.length) time('wall', 'Wall time', [cpu, ...waits], 'Running and waiting together');
  if (waits.length > 1) time('off-cpu', 'Waiting', waits, 'Every reason for waiting');
  for (const i of waits) time(events[i].name, waitLabel(events[i].name), [i], events[i].name);
  events.forEach((event, i) => {
    if (i === cpu || waits.includes(i) || !filled(i)) return;
    const running = r.head.meta.live && !r.head.meta.complete;
    const own = (running ? NOW[event.name] : undefined) ?? HEAP[event.name] ?? FOREIGN[event.name] ?? numbered(event.name) ?? OTHERS[event.name];
    kinds.push({ id: event.name, label: own?.[0] ?? event.name, unit: event.unit, events: [i],
      group: event.name.startsWith('heap:') || event.name in FOREIGN ? 'Memory' : 'Events', noun: own?.[1] ?? 'samples',
      timed: timed.has(i), hint: own?.[2] ?? `The event ${event.name}` });
  });
  return kinds;
}

/** What is counted if nobody has chosen; where calls are looked at, calls that were counted one by one come first. */
export function defaultValue(kinds: ValueKind[], r: Recording, view = ''): ValueKind | undefined {
  const calls = view === 'calls' ? kinds.find((k) => countsItself(k.noun)) : undefined;
  if (calls) return calls;
  const cpu = kinds.find((k) => k.id === 'cpu');
  if (cpu && r.head.events[cpu.events[0]].samples) return cpu;
  return kinds.find((k) => k.id !== 'cpu') ?? cpu;
}
