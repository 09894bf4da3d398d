// Spans, live stacks, ready-made text and benchmarks: what the page computes beside sums.

import { BOX_HEIGHT, place } from '../src/data/graph_layout.ts';
import type { Node } from '../src/data/graph.ts';
import type { Edge } from '../src/data/sandwich.ts';
import assert from 'node:assert/strict';
import test from 'node:test';
import { decode } from '../src/data/decode.ts';
import { draw } from '../src/data/graph.ts';
import { bytes, byteSteps, ticks } from '../src/data/format.ts';
import { distributions, isOutlier, metricsOf, unitOf, type BenchRun } from '../src/data/jobs.ts';
import { matrix } from '../src/data/matrix.ts';
import { Recording } from '../src/data/recording.ts';
import { rates } from '../src/data/series.ts';
import { callersText, sites } from '../src/data/sites.ts';
import { spansOf, suffices } from '../src/data/spans.ts';
import { functions, sum } from '../src/data/sums.ts';
import { CallTree } from '../src/data/tree.ts';
import { defaultValue, valueKinds } from '../src/data/values.ts';
import { makeDocument, sample } from './document.ts';

const MS = 1e6;

test('spans stand by thread and depth', () => {
  const facts = { from: 0, to: 100, least: 10, total: 7, threads: [1, 4] };
  const doc = decode(makeDocument({ spans: facts }, {
    'span.thread': ['delta', [1, 1, 1, 4]], 'span.depth': ['delta', [0, 1, 1, 0]], 'span.start': ['delta', [5, 6, 40, 50]],
    'span.length': ['plain', [80, 20, 0, 9]], 'span.symbol': ['delta', [2, 3, 4, 0]], 'span.count': ['plain', [1, 4, 0, 1]],
  }));
  const set = spansOf(doc, doc.head.spans!);
  assert.deepEqual(set.tracks.get(1), [
    { start: [5], end: [85], id: [2], many: [1] },
    { start: [6, 40], end: [26, 40], id: [3, 4], many: [4, 0] },
  ]);
  assert.equal(set.tracks.get(4)![0].id[0], 0);
  assert.ok(suffices(set, 10, 90, 16, [1, 4, 9]));
  assert.ok(!suffices(set, 10, 90, 100, [1])); // finer than it is
  assert.ok(!suffices(set, 10, 190, 16, [1])); // beyond it
  assert.ok(!suffices(null, 10, 90, 16, []));
});

/** run.py > _PyEval_EvalFrameDefault > list_sort > malloc; the second leads on, the last allocates. */
function live(roles: number[], files = [0, 0, 0, 0], lines = [0, 0, 0, 0]): { r: Recording; tree: CallTree } {
  const r = new Recording();
  r.apply(decode(makeDocument({
    strings: ['', 'serve', '_PyEval_EvalFrameDefault', 'crunch', 'malloc', 'run.py', 'libpython.so', 'heap:live'],
    meta: { title: 't', live: true, complete: false, duration: 10 * MS, date: 0, facts: {} },
    events: [
      { name: 'cpu', unit: 'ns', period: MS, samples: 6, value: 6 * MS },
      { name: 'heap:live', unit: 'bytes', period: 0, samples: 1, value: 100 },
    ],
    processes: [{ pid: 1, parent: -1, name: 'python', arguments: '', exe: '', programs: 1, start: 0, max_rss: 0, ended: false }],
    threads: [{ process: 0, tid: 1, name: 'main', start: 0, cpu: 0 }],
  }, {
    'module.name': ['plain', [5, 6]], 'module.path': ['plain', [5, 6]], 'module.kind': ['plain', [4, 0]], 'module.note': ['plain', [0, 0]],
    'symbol.name': ['delta', [1, 2, 3, 4]], 'symbol.module': ['plain', [1, 2, 1, 2]], 'symbol.file': ['delta', files],
    'symbol.line': ['plain', [0, 0, 0, 0]], 'symbol.nameless': ['plain', [0, 0, 0, 0]], 'symbol.role': ['plain', roles],
    'frame.at': ['delta', [0, 1, 2, 3]], 'frame.steps': ['plain', [1, 1, 1, 1]], 'step.symbol': ['delta', [0, 1, 2, 3]], 'step.line': ['delta', lines],
    // 1 serve, 2 serve>loop, 3 serve>loop>crunch, 4 serve>loop>crunch>loop>malloc, by way of 5
    'stack.up': ['plain', [0, 1, 1, 1, 1, 1]], 'stack.frame': ['delta', [0, 0, 1, 2, 1, 3]],
    'cell.event': ['delta', [0, 0, 1]], 'cell.thread': ['delta', [0, 0, 0]], 'cell.stack': ['delta', [2, 3, 5]],
    'cell.count': ['signed', [2, 4, 1]], 'cell.value': ['signed', [0, 0, 100]],
  })));
  return { r, tree: new CallTree(r) };
}

const only = (r: Recording, event: number) => ({ events: Uint8Array.from(r.head.events, (_, i) => (i === event ? 1 : 0)), threads: null, range: null, waits: false });

test('live stacks are without the ways of the interpreter and of the allocator', () => {
  const { r, tree } = live([0, 1, 0, 2]);
  const rows = new Map(functions(sum(tree, only(r, 0))).map((f) => [f.name, [f.self / MS, f.total / MS]]));
  // What the loop did itself stays with it; what it called, its caller called.
  assert.deepEqual(Object.fromEntries(rows), { serve: [0, 6], crunch: [4, 4], _PyEval_EvalFrameDefault: [2, 2] });
  const crunch = tree.path(tree.nodeOf(3)).map((n) => tree.name(n));
  assert.deepEqual(crunch, ['serve', 'crunch']);
  assert.deepEqual(sites(tree, only(r, 1)).map((s) => [s.name, s.bytes]), [['crunch', 100]]);
  assert.equal(functions(sum(tree, only(r, 1))).find((f) => f.name === 'crunch')!.self, 100);
});

test('memory has the line that asked for it, of Python where native code has none', () => {
  const places = (roles: number[], files: number[]) => {
    const { r, tree } = live(roles, files, [0, 0, 7, 99]);
    return sites(tree, only(r, 1)).map((s) => [s.name, s.place]);
  };
  assert.deepEqual(places([0, 1, 0, 2], [5, 0, 5, 6]), [['crunch', 'run.py:7']]); // not the allocator's line in its file
  assert.deepEqual(places([0, 1, 0, 0], [5, 0, 5, 0]), [['malloc', 'run.py:7']]);
  assert.deepEqual(places([0, 1, 0, 0], [5, 0, 5, 6]), [['malloc', 'libpython.so:99']]);
});

test('what is counted at first: calls where they are looked at; other tools\' heaps are memory', () => {
  const kindsOf = (...names: string[]) => {
    const { r } = live([0, 0, 0, 0]);
    r.head.events = names.map((name) => ({ ...r.head.events[0], name, unit: name.endsWith('space') ? 'bytes' : 'ns' }));
    const kinds = valueKinds(r);
    return { kinds, first: (view?: string) => defaultValue(kinds, r, view)!.id };
  };
  const traced = kindsOf('cpu', 'calls');
  assert.deepEqual([traced.first(), traced.first('flame'), traced.first('calls')], ['cpu', 'cpu', 'calls']);
  assert.equal(kindsOf('cpu').first('calls'), 'cpu');
  const heap = kindsOf('inuse_space', 'alloc_space');
  assert.deepEqual(heap.kinds.map((k) => [k.group, k.label]), [['Memory', 'Heap live'], ['Memory', 'Heap allocated']]);
});

test('of many threads, those are told of that free what others allocated', () => {
  const own = Array.from({ length: 20 }, (_, i) => ({ from: `w${i}`, by: 'itself', from_tid: i, by_tid: i, value: 1000 - i, count: 1 }));
  const passed = [{ from: 'w17', by: 'w18', from_tid: 17, by_tid: 18, value: 30, count: 1 }, { from: 'w19', by: 'gone', from_tid: 19, by_tid: 99, value: 20, count: 1 }];
  const m = matrix([...own, ...passed]);
  assert.deepEqual(m.from.slice(0, 3), ['w17', 'w19', 'w0']);
  assert.ok(m.by.includes('w18') && m.by.includes('gone') && m.from.length === 12 && m.by.length === 12);
  assert.equal(m.cell.get('w17\0w18')!.value, 30);
});

test('marks of bytes are round, also beyond the next unit', () => {
  const axis = (high: number) => {
    const step = byteSteps(high).find((s) => high / s <= 6)!;
    return ticks(Array.from({ length: Math.floor(high / step) + 1 }, (_, i) => bytes(i * step)));
  };
  assert.deepEqual(axis(600 * 1024 ** 2), ['0 B', '100 MiB', '200 MiB', '300 MiB', '400 MiB', '500 MiB', '600 MiB']);
  assert.deepEqual(axis(1.3 * 1024 ** 3), ['0 B', '256 MiB', '512 MiB', '768 MiB', '1.00 GiB', '1.25 GiB']);
  assert.deepEqual(axis(5), ['0 B', '1 B', '2 B', '3 B', '4 B', '5 B']);
  assert.deepEqual(axis(0.5), ['0 B']);
});

test('without roles stacks are as they are', () => {
  const { tree } = live([0, 0, 0, 0]);
  assert.deepEqual(tree.path(tree.nodeOf(3)).map((n) => tree.name(n)), ['serve', '_PyEval_EvalFrameDefault', 'crunch']);
});

test('a document in two parts is read when the second has come', () => {
  const whole = sample();
  const view = new DataView(whole.buffer);
  const length = view.getUint32(4, true);
  const head = JSON.parse(new TextDecoder().decode(whole.subarray(8, 8 + length)));
  const body = whole.subarray(8 + length);
  const first: number[] = [];
  const rest: number[] = [];
  let at = 0;
  for (const c of head.columns) {
    if (/^(frame|step|stack|cell)\./.test(c.name)) c.later = true;
    (c.later ? rest : first).push(...body.subarray(at, at + c.bytes));
    at += c.bytes;
  }
  const text = new TextEncoder().encode(JSON.stringify(head));
  const bytes = new Uint8Array([...whole.subarray(0, 8), ...text, ...first]);
  new DataView(bytes.buffer).setUint32(4, text.length, true);
  const doc = decode(bytes);
  const r = new Recording();
  r.apply(doc);
  r.code();
  assert.deepEqual([doc.waits(), r.cells.length, r.times.length], [true, 0, 5]);
  assert.throws(() => doc.rest(Uint8Array.from(rest.slice(1))), /cut short/);
  doc.rest(Uint8Array.from(rest));
  r.code();
  assert.deepEqual([doc.waits(), r.cells.length, r.stackParent.length], [false, 5, 8]);
});

test('source text is found by its line, and names of objects are no files', () => {
  const r = new Recording();
  r.apply(decode(sample({ sources: { 'app.c': [[9, 'int main(void)', '{'], [40, 'x']] } })));
  assert.equal(r.sourceOf('app.c', 10), '{');
  assert.equal(r.sourceOf('app.c', 11), undefined);
  assert.equal(r.sourceOf('app.c', 40), 'x');
  assert.equal(r.sourceOf('constructor', 1), undefined);
});

test('distributions of benchmarks', () => {
  const run = (name: string, real: number, i: number): BenchRun => ({ time: i, key: `k${i}`, host: 'h', name, run: { number: i, real, cycles: 5, command: 'x' } });
  const runs = [1, 2, 3, 4, 5, 6, 7, 30].map((v, i) => run('a', v, i)).concat(run('b', 2, 9));
  assert.deepEqual(metricsOf(runs), ['real', 'cycles']);
  const [a, b] = distributions(runs, 'real');
  assert.deepEqual([a.median, a.low, a.high, a.mean, a.outliers, a.values.length], [4.5, 2.75, 6.25, 7.25, 1, 8]);
  assert.ok(isOutlier(a, 30) && !isOutlier(a, 7));
  assert.deepEqual([b.name, b.median, b.deviation], ['b', 2, 0]);
  assert.deepEqual(['cpu', 'off-cpu:io', 'heap:live', 'alloc_space', 'cache-misses'].map(unitOf), ['ns', 'ns', 'bytes', 'bytes', 'count']);
});

test('a count that grows becomes a rate', () => {
  const r = new Recording();
  r.apply(decode(sample()));
  const curve = { number: 0, name: 'switches', unit: 'count' as const, process: 0, thread: -1, points: 3, times: [1e9, 2e9, 4e9], values: [50, 80, 180] };
  const rate = rates(r, curve);
  assert.deepEqual([rate.times, rate.values], [[0, 1e9, 2e9, 4e9], [50, 30, 50, 0]]);
});

/** Stacks as functions outermost first, each with so many samples; functions are numbered by their letters, A is Python. */
function called(stacks: [string, number][]): { tree: CallTree; r: Recording } {
  const letters = 'ABCDEFGHIJKLMNOPQRST';
  const numbers = [...letters].map((_, i) => i);
  const up: number[] = [0];
  const frame: number[] = [0];
  const at = new Map([['', 0]]);
  for (const [stack] of stacks)
    for (let i = 1; i <= stack.length; i++) {
      if (at.has(stack.slice(0, i))) continue;
      at.set(stack.slice(0, i), up.length);
      frame.push(letters.indexOf(stack[i - 1]));
      up.push(up.length - at.get(stack.slice(0, i - 1))!);
    }
  const r = new Recording();
  r.apply(decode(makeDocument({
    strings: ['', ...letters, 'run.py', 'app'],
    meta: { title: 't', live: false, complete: true, duration: 10 * MS, date: 0, facts: {} },
    events: [{ name: 'cpu', unit: 'ns', period: MS, samples: 1, value: MS }],
    processes: [{ pid: 1, parent: -1, name: 'app', arguments: '', exe: '', programs: 1, start: 0, max_rss: 0, ended: false }],
    threads: [{ process: 0, tid: 1, name: 'main', start: 0, cpu: 0 }],
  }, {
    'module.name': ['plain', [21, 22]], 'module.path': ['plain', [21, 22]], 'module.kind': ['plain', [4, 0]], 'module.note': ['plain', [0, 0]],
    'symbol.name': ['delta', numbers.map((i) => i + 1)], 'symbol.module': ['plain', numbers.map((i) => (i ? 2 : 1))], 'symbol.file': ['delta', numbers.map(() => 0)],
    'symbol.line': ['plain', numbers.map(() => 0)], 'symbol.nameless': ['plain', numbers.map(() => 0)], 'symbol.role': ['plain', numbers.map(() => 0)],
    'frame.at': ['delta', numbers], 'frame.steps': ['plain', numbers.map(() => 1)], 'step.symbol': ['delta', numbers], 'step.line': ['delta', numbers.map(() => 0)],
    'stack.up': ['plain', up], 'stack.frame': ['delta', frame],
    'cell.event': ['delta', stacks.map(() => 0)], 'cell.thread': ['delta', stacks.map(() => 0)], 'cell.stack': ['delta', stacks.map(([s]) => at.get(s)!)],
    'cell.count': ['signed', stacks.map(([, n]) => n)], 'cell.value': ['signed', stacks.map(() => 0)],
  })));
  return { tree: new CallTree(r), r };
}

test('a call graph folds functions that only lead on, and stands from callers to callees', () => {
  // A to E lead to F, which calls G (work) and, by way of H and I, J (work); J calls F again.
  const { tree, r } = called([['ABCDEFG', 60], ['ABCDEFHIJ', 30], ['ABCDEFHIJF', 10]]);
  const sums = sum(tree, only(r, 0));
  const shown = (fold: boolean) => draw(sums, functions(sums), -1, 32, fold);
  const names = (d: ReturnType<typeof shown>) => d.boxes.map((b) => b.members.map((f) => f.name).join('')).sort();
  assert.deepEqual(names(shown(true)), ['ABCDE', 'F', 'G', 'HI', 'J']);
  assert.deepEqual(names(shown(false)), [...'ABCDEFGHIJ']);
  const column = new Map(shown(true).boxes.map((b) => [b.row.name, b.column]));
  assert.deepEqual([...'AFGHJ'].map((n) => column.get(n)), [0, 1, 2, 2, 3]);
  const arrows = shown(true).arrows.map((a) => `${a.from}>${a.to}${a.back ? ' back' : ''} ${a.value / MS}`);
  assert.ok(arrows.includes('9>5 back 10') && arrows.includes('-2>5 100') && arrows.includes('5>6 60'), arrows.join(', '));
});

test('who works itself is never folded away', () => {
  const { tree, r } = called([['ABCD', 95], ['AB', 5]]);
  const sums = sum(tree, only(r, 0));
  assert.deepEqual(draw(sums, functions(sums), -1, 32, true).boxes.map((b) => b.members.map((f) => f.name).join('')).sort(), ['A', 'B', 'C', 'D']);
});

test('callers of who asked for memory lead to the Python code', () => {
  const { tree } = called([['BACDEFGH', 1], ['BCDEFGH', 1]]);
  const deep = (path: string) => callersText(tree, [...tree.symbol.data.keys()].find((n) => tree.path(n).map((i) => tree.name(i)).join('').endsWith(path))!, 5);
  assert.equal(deep('BACDEFGH'), 'G ← … ← A ← B');
  assert.equal(deep('BCDEFGH'), 'G ← F ← E ← D ← C ← …');
});

test('a function stands behind the callers that it has much from, and calls pass beside boxes', () => {
  const node = (id: number, total: number) => ({ id, row: { symbol: id, name: '', self: 0, total, selfCount: 0, totalCount: 0 } }) as never as Node;
  const edges = [[0, 1, 100], [1, 2, 55], [1, 3, 40], [3, 2, 40], [0, 2, 1]]
    .map(([from, to, value]) => ({ from, to, value }) as never as Edge);
  const { boxes, arrows, height } = place([0, 1, 2, 3].map((id) => node(id, 100)), edges, new Map());
  const column = new Map(boxes.map((b) => [b.id, b.column]));
  assert.deepEqual([0, 1, 2, 3].map((id) => column.get(id)), [0, 1, 3, 2]);
  const passes = (from: number, to: number) => arrows.find((a) => a.from === from && a.to === to)!.path.split('H').length - 1;
  assert.deepEqual([passes(1, 2), passes(3, 2), passes(0, 2)], [1, 0, 2]);
  assert.ok(boxes.every((b) => b.y + BOX_HEIGHT < height));
});
