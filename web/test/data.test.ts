// The page's computations on a small recording whose truth is known.

import assert from 'node:assert/strict';
import test from 'node:test';
import { decode, decodeColumn } from '../src/data/decode.ts';
import * as format from '../src/data/format.ts';
import { family, howItEnded } from '../src/data/family.ts';
import { firstAfter, layOut, nodeAt } from '../src/data/layout.ts';
import { Recording } from '../src/data/recording.ts';
import { callees, callers, edges } from '../src/data/sandwich.ts';
import { addCurves, closedCurves, usage } from '../src/data/series.ts';
import { functions, lines, sum, type Choice } from '../src/data/sums.ts';
import { chart, intervals } from '../src/data/tracks.ts';
import { CallTree } from '../src/data/tree.ts';
import { alike, Comparer } from '../src/data/compare.ts';
import { valueKinds } from '../src/data/values.ts';
import { formatRoute, parseRoute } from '../src/route.ts';
import { encodeColumn, makeDocument, sample } from './document.ts';

const MS = 1e6;

function open(bytes = sample()): { r: Recording; tree: CallTree } {
  const r = new Recording();
  r.apply(decode(bytes));
  return { r, tree: new CallTree(r) };
}

function choose(r: Recording, events: number[], more: Partial<Choice> = {}): Choice {
  const chosen = new Uint8Array(r.head.events.length);
  for (const e of events) chosen[e] = 1;
  return { events: chosen, threads: null, range: null, waits: false, ...more };
}

test('columns come back as they were written', () => {
  const values = [0, 1, 127, 128, 300, 2 ** 31, 2 ** 40 + 3, 5];
  for (const coding of ['plain', 'signed', 'delta'] as const)
    assert.deepEqual([...decodeColumn(encodeColumn(values, coding), values.length, coding)], values);
  const signed = [-1, 1, -(2 ** 40), 2 ** 33, -2147483648, 0];
  for (const coding of ['signed', 'delta'] as const)
    assert.deepEqual([...decodeColumn(encodeColumn(signed, coding), signed.length, coding)], signed);
});

test('documents that are cut or foreign are refused', () => {
  const whole = sample();
  assert.throws(() => decode(whole.subarray(0, 6)), /no document/);
  assert.throws(() => decode(whole.subarray(0, 100)), /cut short/);
  assert.throws(() => decode(whole.subarray(0, whole.length - 1)), /cut short/);
  assert.throws(() => decode(new Uint8Array(64)), /no document/);
  assert.throws(() => decode(makeDocument({ version: 2 }, {})), /version 2/);
  assert.throws(() => decodeColumn(Uint8Array.of(0x80), 1, 'plain'), /cut short/);
});

test('functions count once a stack, and code without names is one box', () => {
  const { r, tree } = open();
  const sums = sum(tree, choose(r, [0]));
  assert.equal(sums.value, 10 * MS);
  const rows = new Map(functions(sums).map((f) => [f.name, f]));
  const costs = (name: string) => [rows.get(name)!.self / MS, rows.get(name)!.total / MS];
  assert.deepEqual(costs('main'), [0, 5]);
  assert.deepEqual(costs('work'), [2, 5]);
  assert.deepEqual(costs('leaf'), [0, 3]);
  assert.deepEqual(costs('tiny'), [3, 3]);
  assert.deepEqual(costs('[libx.so]'), [4, 4]);
  assert.deepEqual(costs('[no stack]'), [1, 1]);
  assert.equal(rows.get('[libx.so]')!.totalCount, 4);
});

test('wall time shows what was waited for', () => {
  const { r, tree } = open();
  const sums = sum(tree, choose(r, [0, 1], { waits: true }));
  const lock = functions(sums).find((f) => f.name === 'off-cpu:lock')!;
  assert.deepEqual([sums.value / MS, lock.self / MS], [20, 10]);
  assert.deepEqual(valueKinds(r).map((k) => k.id), ['cpu', 'wall', 'off-cpu:lock']);
});

test('threads and times narrow', () => {
  const { r, tree } = open();
  const one = sum(tree, choose(r, [0], { threads: Uint8Array.of(0, 1) }));
  assert.equal(one.value / MS, 4);
  const late = sum(tree, choose(r, [0], { range: [4 * MS, 10 * MS] }));
  assert.equal(late.value / MS, 3);
  // Rows that were folded up to an ancestor say so.
  const folded = sum(tree, choose(r, [0], { range: [0, 4.1 * MS] }));
  const smaller = functions(folded).find((f) => f.name === '[smaller calls]')!;
  assert.deepEqual([folded.value / MS, smaller.self / MS], [7, 4]);
});

test('boxes stand wide ones first and are found again', () => {
  const { r, tree } = open();
  const layout = layOut(sum(tree, choose(r, [0])));
  assert.deepEqual([...layout.level(1).node].map((n) => tree.name(n)), ['main', 'start', '[no stack]']);
  assert.deepEqual([...layout.level(1).start].map((x) => x / MS), [0, 5, 9]);
  assert.equal(tree.name(nodeAt(layout, 1, 5.5 * MS)), 'start');
  assert.equal(nodeAt(layout, 2, 9.5 * MS), -1);
  assert.equal(nodeAt(layout, 9, 0), -1);
  assert.equal(firstAfter(layout.level(1), 5 * MS), 1);
});

test('callers, callees and calls', () => {
  const { r, tree } = open();
  const sums = sum(tree, choose(r, [0]));
  const work = functions(sums).find((f) => f.name === 'work')!.symbol;
  const up = callers(sums, work);
  assert.deepEqual([up.value / MS, up.tree.name(0), up.tree.name(1)], [5, 'work', 'main']);
  const down = callees(sums, work);
  assert.equal(down.value / MS, 5);
  assert.deepEqual(functions(down).map((f) => [f.name, f.total / MS]), [['work', 3], ['leaf', 3], ['tiny', 3]]);
  const call = edges(sums).map((e) => [tree.symbolName(e.from), tree.symbolName(e.to), e.value / MS]);
  assert.deepEqual(call.find((e) => e[0] === 'main'), ['main', 'work', 5]);
  assert.deepEqual(call.find((e) => e[0] === 'work' && e[1] === 'work'), ['work', 'work', 3]);
  // Counts that are a function's own are not those of what it calls, and recursion is counted at each step.
  for (const e of edges(sums)) {
    let own = 0;
    for (let i = 1; i < sums.total.length; i++)
      if (tree.symbol.data[i] === e.to && tree.symbol.data[tree.parent.data[i]] === e.from) own += sums.selfCount[i];
    assert.equal(e.calls, own);
    assert.ok(e.calls <= e.count || e.from === e.to);
  }
  assert.ok(edges(sums).some((e) => e.calls < e.count));
});

test('lines', () => {
  const { r } = open();
  const all = lines(r, choose(r, [0]));
  const at = (line: number) => all.find((l) => l.line === line)!;
  assert.deepEqual([at(21).self / MS, at(21).total / MS], [2, 5]);
  assert.deepEqual([at(41).self / MS, at(41).file], [3, 'work.c']);
  assert.deepEqual(lines(r, choose(r, [0]), 1).map((l) => l.line), [21]);
});

test('intervals follow each other: samples stand for the time before, waits for the time after', () => {
  const { r, tree } = open();
  const main = intervals(r).get(0)!;
  const spans = [...main.start].map((s, i) => [s / MS, main.end[i] / MS]);
  assert.deepEqual(spans, [[0, 3], [3, 5], [5, 6], [6, 16]]);
  const levels = chart(tree, main, 0.5 * MS);
  assert.deepEqual(levels[0].id.map((n) => tree.name(n)), ['main', '[no stack]', 'main']);
  assert.deepEqual([levels[0].start[0], levels[0].end[0]], [0, 5 * MS]);
});

test('busy CPUs add up to the time that was spent', () => {
  const { r } = open();
  const u = usage(r, [0], null, 5);
  const step = r.head.meta.duration / u.values.length;
  assert.ok(Math.abs(u.values.reduce((a, v) => a + v * step, 0) - 10 * MS) < 1);
});

test('a process that has ended holds nothing', () => {
  const { r } = open();
  const head = { number: 0, name: 'rss', unit: 'bytes' as const, thread: -1, points: 1 };
  r.curves = [{ ...head, process: 0, times: [1 * MS], values: [100] }, { ...head, process: 1, times: [2 * MS], values: [50] }];
  r.head.processes[1].end = undefined;
  assert.deepEqual(addCurves(closedCurves(r)), { times: [1 * MS, 2 * MS, 9 * MS], values: [100, 150, 50] });
});

test('the process tree', () => {
  const { r } = open();
  const rows = family(r, choose(r, [0]));
  assert.deepEqual(rows.map((row) => [row.process, row.depth, row.self / MS]), [[0, 0, 6], [1, 1, 4]]);
  for (const row of rows) assert.equal(row.parts.reduce((a, v) => a + v, 0), row.self);
  assert.deepEqual(r.head.processes.map((p) => howItEnded(p, false)), ['exit 0', 'SIGKILL']);
});

test('two recordings in one tree', () => {
  const { r, tree } = open();
  const other = open();
  const after = sum(tree, choose(r, [0]));
  const before = sum(other.tree, choose(other.r, [0], { threads: Uint8Array.of(1, 0) }));
  const both = new Comparer(tree, other.tree).compare(after, before);
  assert.deepEqual([both.before.value / MS, both.after.value / MS, both.width[0] / MS], [6, 10, 10]);
  const start = functions(both.after).find((f) => f.name === 'start')!;
  assert.equal(start.total / MS, 4);
  assert.ok(!functions(both.before).some((f) => f.name === 'start'));
  const even = new Comparer(tree, other.tree).compare(after, before, after.value / before.value);
  assert.deepEqual([even.before.value / MS, even.after.value / MS], [10, 10]);
  assert.ok(alike(after, after, r, other.r) && !alike(after, before, r, other.r));
  other.r.head.meta.duration *= 1.1;
  assert.ok(!alike(after, after, r, other.r));
});

test('a delta adds what is new, renames frames, and may widen the buckets', () => {
  const { r, tree } = open();
  const before = r.renamed;
  r.apply(decode(makeDocument({
    delta: true, sequence: 1, from: { strings: 11, modules: 2, symbols: 6, stacks: 8 }, strings: ['fresh'],
    events: r.head.events, processes: r.head.processes, threads: r.head.threads, buckets: { width: 500000, cut: false },
    curves: [{ number: 3, name: 'rss', unit: 'bytes', process: 0, thread: -1, points: 2 }],
  }, {
    'symbol.name': ['delta', [11]], 'symbol.module': ['plain', [1]], 'symbol.file': ['delta', [0]],
    'symbol.line': ['plain', [0]], 'symbol.nameless': ['plain', [0]],
    'frame.at': ['delta', [4, 6]], 'frame.steps': ['plain', [1, 1]], 'step.symbol': ['delta', [6, 6]], 'step.line': ['delta', [0, 0]],
    'stack.up': ['plain', [8]], 'stack.frame': ['delta', [6]],
    'cell.event': ['delta', [0, 0]], 'cell.thread': ['delta', [0, 1]], 'cell.stack': ['delta', [8, 7]],
    'cell.count': ['signed', [2, -1]], 'cell.value': ['signed', [0, 0]],
    'time.event': ['delta', [0]], 'time.thread': ['delta', [0]], 'time.stack': ['delta', [16]],
    'time.count': ['signed', [2]], 'time.value': ['signed', [0]], 'time.bucket': ['delta', [15]],
    'curve.time': ['delta', [1, 2]], 'curve.value': ['delta', [100, 200]],
  })));
  assert.equal(r.renamed, before + 1);
  const sums = sum(tree, choose(r, [0]));
  const fresh = functions(sums).find((f) => f.name === 'fresh')!;
  // Frame 4 was [libx.so]; it is `fresh` now, as is the new stack.
  assert.deepEqual([sums.value / MS, fresh.total / MS], [11, 5]);
  assert.equal(r.width, 500000);
  assert.equal(Math.max(...r.times.bucket.data.subarray(0, r.times.length)), 15);
  assert.equal(r.times.bucket.data[0], 5);
  assert.deepEqual(r.curves.map((c) => c.values), [[100, 200]]);
});

test('numbers as people read them', () => {
  assert.equal(format.count(1234567), '1\u2009234\u2009567');
  assert.equal(format.duration(999), '999 ns');
  // An axis tells its marks apart, whatever its step.
  assert.deepEqual([0.75e9, 1e9, 1.25e9].map((t) => format.moment(t, 0.25e9)), ['750 ms', '1.00 s', '1.25 s']);
  assert.deepEqual([2.5e9, 5e9].map((t) => format.moment(t, 2.5e9)), ['2.5 s', '5.0 s']);
  assert.deepEqual([0, 0.5e9, 1e9].map((t) => format.moment(t, 0.5e9, 1e9)), ['0.0 s', '0.5 s', '1.0 s']);
  assert.deepEqual([999.4e6, 999.6e6, 9.999e3].map(format.duration), ['999 ms', '1.00 s', '10.0 µs']);
  assert.deepEqual([1023 * 1024, 1023.6 * 1024].map(format.bytes), ['1023 KiB', '1.00 MiB']);
  assert.deepEqual([0, 150e9].map((t) => format.moment(t, 30e9, 300e9)), ['0:00 min', '2:30 min']);
  assert.equal(format.moment(240e9, 120e9, 300e9), '4 min');
  assert.equal(format.moment(3750e9, 30e9, 8000e9), '1:02:30 h');
  assert.deepEqual([2e9, 4e9].map((t) => format.moment(t, 2e9)), ['2 s', '4 s']);
  assert.deepEqual(format.ticks(['0 B', '96.0 MiB', '128 MiB']), ['0 B', '96 MiB', '128 MiB']);
  assert.deepEqual(format.ticks(['0.50 GiB', '1.00 GiB']), ['0.50 GiB', '1.00 GiB']);
  assert.equal(format.duration(1.5e9), '1.50 s');
  assert.equal(format.duration(3723e9), '1 h 02 min');
  assert.equal(format.bytes(1536), '1.50 KiB');
  assert.equal(format.percent(1, 100000), '<0.01 %');
  assert.equal(format.change(-2e6, 'ns'), '−2.00 ms');
});

test('the address holds everything, and nonsense in it does no harm', () => {
  const text = '#/flame/sandwich?value=wall&process=1.2&thread=3&time=5~10&search=a%7Cb&colour=module&shape=flame&symbol=7&zoom=0.25~0.5&compare=off';
  const route = parseRoute(text);
  assert.deepEqual(parseRoute(formatRoute(route)), route);
  assert.equal(route.query, 'a|b');
  const odd = parseRoute('#/nowhere/x?time=9~1&symbol=x&process=a.b&zoom=&colour=<b>');
  assert.deepEqual([odd.view, odd.tab, odd.range, odd.symbol, odd.processes, odd.zoom, odd.colour], ['overview', 'graph', null, -1, [], null, 'kind']);
});
