// Makes documents for tests, as render/page_data.c writes them.

import type { Head } from '../src/data/decode.ts';

type Coding = 'plain' | 'signed' | 'delta';

function leb(v: bigint): number[] {
  const out: number[] = [];
  for (; v >= 0x80n; v >>= 7n) out.push(Number(v & 0x7fn) | 0x80);
  out.push(Number(v));
  return out;
}

function zigzag(v: number): bigint {
  return v < 0 ? BigInt(-v) * 2n - 1n : BigInt(v) * 2n;
}

export function encodeColumn(values: number[], coding: Coding): Uint8Array {
  let last = 0;
  return Uint8Array.from(values.flatMap((v) => {
    const difference = v - last;
    last = v;
    return leb(coding === 'plain' ? BigInt(v) : zigzag(coding === 'signed' ? v : difference));
  }));
}

export function makeDocument(head: Partial<Head>, columns: Record<string, [Coding, number[]]>): Uint8Array {
  const parts = Object.entries(columns).map(([name, [coding, values]]) => ({
    name, coding, rows: values.length, data: encodeColumn(values, coding),
  }));
  const whole = {
    version: 1, delta: false, sequence: 0, from: { strings: 0, modules: 0, symbols: 0, stacks: 0 },
    meta: { title: 't', live: false, complete: true, duration: 10e6, date: 0, facts: {} },
    events: [], processes: [], threads: [], heaps: [], losses: [], lost: 0,
    cost: { collector_cpu: 0, collector_rss: 0, target_extra: 0, stacks_whole: 0, stacks_cut: 0, bytes_written: 0 },
    notes: [], curves: [], buckets: { width: 250000, cut: false }, strings: [''], ...head,
    columns: parts.map(({ name, coding, rows, data }) => ({ name, coding, rows, bytes: data.length })),
  };
  const text = new TextEncoder().encode(JSON.stringify(whole));
  const out = new Uint8Array(8 + text.length + parts.reduce((a, p) => a + p.data.length, 0));
  out.set(new TextEncoder().encode('SPD1'));
  new DataView(out.buffer).setUint32(4, text.length, true);
  out.set(text, 8);
  let at = 8 + text.length;
  for (const p of parts) {
    out.set(p.data, at);
    at += p.data.length;
  }
  return out;
}

const MS = 1e6;

/**
 * main > work > work > leaf (inlines tiny): 3 ms; main > work: 2 ms; start > [libx] > [libx]: 4 ms;
 * no stack: 1 ms; main > work waits for a lock: 10 ms. Thread 0 but for [libx], which is thread 1's.
 */
export function sample(more: Partial<Head> = {}): Uint8Array {
  return makeDocument({
    strings: ['', 'main', 'work', 'leaf', 'tiny', 'start', '[libx.so]', 'app', 'libx.so', 'app.c', 'work.c'],
    events: [
      { name: 'cpu', unit: 'ns', period: MS, samples: 10, value: 10 * MS },
      { name: 'off-cpu:lock', unit: 'ns', period: 0, samples: 1, value: 10 * MS },
    ],
    processes: [
      { pid: 42, parent: -1, name: 'app', arguments: 'app', exe: '', programs: 1, start: 0, max_rss: 0, ended: true, status: 0, end: 9 * MS },
      { pid: 50, parent: 0, name: 'tool', arguments: '', exe: '', programs: 1, start: 0, max_rss: 0, ended: true, signal: 'KILL', end: 9 * MS },
    ],
    threads: [
      { process: 0, tid: 42, name: 'main', start: 0, cpu: 0 },
      { process: 1, tid: 50, name: 'worker', start: 0, cpu: 0 },
    ],
    ...more,
  }, {
    'module.name': ['plain', [7, 8]],
    'module.path': ['plain', [7, 8]],
    'module.kind': ['plain', [0, 0]],
    'module.note': ['plain', [0, 0]],
    'symbol.name': ['delta', [1, 2, 3, 4, 5, 6]],
    'symbol.module': ['plain', [1, 1, 1, 1, 1, 2]],
    'symbol.file': ['delta', [9, 10, 10, 10, 9, 0]],
    'symbol.line': ['plain', [10, 20, 30, 40, 50, 0]],
    'symbol.nameless': ['plain', [0, 0, 0, 0, 0, 1]],
    'frame.at': ['delta', [0, 1, 2, 3, 4, 5]],
    'frame.steps': ['plain', [1, 1, 2, 1, 1, 1]],
    'step.symbol': ['delta', [0, 1, 2, 3, 4, 5, 5]],
    'step.line': ['delta', [11, 21, 31, 41, 51, 0, 0]],
    // 1 main, 2 main>work, 3 main>work>work, 4 ...>leaf+tiny, 5 start, 6 start>libx, 7 start>libx>libx
    'stack.up': ['plain', [0, 1, 1, 1, 1, 5, 1, 1]],
    'stack.frame': ['delta', [0, 0, 1, 1, 2, 3, 4, 5]],
    'cell.event': ['delta', [0, 0, 0, 0, 1]],
    'cell.thread': ['delta', [0, 0, 0, 1, 0]],
    'cell.stack': ['delta', [0, 2, 4, 7, 2]],
    'cell.count': ['signed', [1, 2, 3, 4, 1]],
    'cell.value': ['signed', [0, 0, 0, 0, 10 * MS]],
    'time.event': ['delta', [0, 0, 0, 0, 1]],
    'time.thread': ['delta', [0, 0, 0, 1, 0]],
    'time.stack': ['delta', [8, 4, 0, 15, 4]],
    'time.count': ['signed', [3, 2, 1, 4, 1]],
    'time.value': ['signed', [0, 0, 0, 0, 10 * MS]],
    'time.bucket': ['delta', [11, 19, 23, 15, 24]],
  });
}
