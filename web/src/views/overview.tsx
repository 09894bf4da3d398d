// Overview: what ran, its process tree, curves over time, where time went, and what it cost.

import { useEffect, useMemo, useState } from 'preact/hooks';
import { bytes, capital, count, duration as formatDuration, moment, percent, plural, value as formatValue, when } from '../data/format.ts';
import { family, howItEnded, type ProcessRow } from '../data/family.ts';
import type { Curve as Series, Recording } from '../data/recording.ts';
import { addCurves, closedCurves, rates, usage } from '../data/series.ts';
import { lineColour } from '../paint/colours.ts';
import { go, route } from '../route.ts';
import { choice, coded, duration, functionRows, kind, kinds, recording, sums, threadMask, version } from '../store.ts';
import { Chart, type Line } from '../ui/chart.tsx';
import { Card, Empty, Fact, Share } from '../ui/parts.tsx';
import { dark } from '../ui/theme.ts';
import { FunctionName, openSymbol } from './flame.tsx';

export function Overview() {
  const r = recording.value!;
  const mask = threadMask.value;
  const night = dark.value;
  const all = useMemo(() => panels(r, mask, night), [r, mask, night, version.value]);
  return (
    <div class="view overview">
      <Facts />
      <div class="columns">
        <div class="column-main">
          <Curves all={all} />
          <Processes />
          <MoreCurves all={all} />
        </div>
        <div class="column-side">
          <Hot />
          <Accounting />
          <Notes />
        </div>
      </div>
    </div>
  );
}

function Facts() {
  version.value;
  const r = recording.value!;
  const { head } = r;
  const k = kind.value;
  const narrowed = threadMask.value || route.value.range;
  const curves = closedCurves(r);
  const cpu = kinds.value.find((v) => v.id === 'cpu');
  const total = head.events[cpu?.events[0] ?? -1]?.value ?? 0;
  const curved = peakOf(curves.filter((c) => c.name === 'rss' && c.thread < 0));
  const rss = curved || Math.max(0, ...head.processes.map((p) => p.max_rss));
  const peaks = head.tables?.peaks?.sections.peaks?.rows ?? [];
  const heap = peaks.length
    ? Math.max(...peaks.map((p) => Number(p.value)))
    : peakOf(wholeHeap(curves.filter((c) => c.name === 'heap' && c.thread < 0)));
  const samples = head.events.reduce((a, e) => a + (e.name.startsWith('heap:') || e.name === 'calls' ? 0 : e.samples), 0);
  const cost = head.cost.collector_cpu + head.cost.target_extra;
  return (
    <dl class="facts">
      {narrowed && sums.value && k && (
        <Fact label={`${k.label} of what is chosen`} value={formatValue(sums.value.value, k.unit)} note={cpu && k === cpu ? `${percent(sums.value.value, total)} of all` : 'with the filters above'} />
      )}
      <Fact label={head.meta.live && !head.meta.complete ? 'Recording for' : 'Duration'} value={formatDuration(head.meta.duration)}
        note={head.meta.date ? when(head.meta.date) : undefined} />
      {cpu && <Fact label="CPU time" value={formatDuration(total)}
        note={head.meta.duration ? `${(total / head.meta.duration).toFixed(2)} CPUs busy` : undefined} />}
      <Fact label="Processes" value={count(head.processes.length)} note={plural(head.threads.length, 'thread')} />
      {heap > 0 && <Fact label="Heap peak" value={bytes(heap)} note="all processes together" />}
      {rss > 0 && <Fact label="Peak RSS" value={bytes(rss)} note={curved ? 'all processes together' : 'of the largest process'} />}
      <Fact label="Samples" value={count(samples)} tone={head.lost ? 'warn' : undefined}
        note={head.lost ? `${count(head.lost)} lost` : 'none lost'} />
      {cost > 0 && head.meta.duration > 0 && <Fact label="Profiler" value={percent(cost, head.meta.duration)} note="of one CPU" />}
    </dl>
  );
}

/** The curve of all together, if there is one: it knows which peaks did not meet. */
function wholeHeap(heap: Series[]): Series[] {
  const total = heap.filter((c) => c.process < 0);
  return total.length ? total : heap;
}

function peakOf(curves: Series[]): number {
  if (!curves.length) return 0;
  return Math.max(0, ...addCurves(curves).values);
}

interface Panel {
  title: string;
  first: boolean; // stands above the processes
  times: number[];
  lines: Line[];
  unit: string;
  format?: (v: number) => string;
}

/** Curves that only grow, and what they are called as a rate. */
const GROWING: Record<string, string> = { 'page faults': 'Page faults a second', switches: 'Context switches a second' };
/** Events that those curves tell already, of every process and not by samples. */
const GROWN: Record<string, string> = { 'page-faults': 'page faults', 'context-switches': 'switches' };

const CURVES: Record<string, string> = {
  'rss:anonymous': 'Resident: the program’s own pages',
  'rss:file': 'Resident: pages of files',
  'rss:shared': 'Resident: shared memory',
  pss: 'Proportional share of memory (PSS)',
  mapped: 'Mapped by the program itself',
};

/** CPUs, then one panel for each kind of curve and for each event that happens over time. */
function panels(r: Recording, mask: Uint8Array | null, night: boolean): Panel[] {
  const out: Panel[] = [];
  const every = closedCurves(r);
  const cpu = kinds.value.find((k) => k.id === 'cpu' && k.timed);
  if (cpu) {
    const u = usage(r, cpu.events, mask);
    out.push({ title: 'CPUs busy', first: true, unit: 'count', times: u.times, format: (v) => String(Number(v.toFixed(v >= 10 ? 0 : 2))),
      lines: [{ label: 'CPUs busy', values: u.values, colour: lineColour(0, night), fill: true }] });
  }
  const chosen = (c: Series) => c.thread < 0 && (!mask || r.head.threads.some((t, i) => t.process === c.process && mask[i]));
  const memory = ['rss', 'heap'].map((name) => every.filter((c) => c.name === name && chosen(c)));
  if (memory.some((m) => m.length)) out.push(memoryPanel(memory[0], mask ? memory[1] : wholeHeap(every.filter((c) => c.name === 'heap' && c.thread < 0)), night));
  const names = new Set(every.map((c) => c.name).filter((n) => n !== 'rss' && n !== 'heap'));
  for (const name of [...names].slice(0, 6)) {
    const curves = every.filter((c) => c.name === name && chosen(c));
    if (!curves.length) continue;
    const counted = GROWING[name];
    const all = addCurves(counted ? curves.map((c) => rates(r, c)) : curves);
    const title = counted ?? CURVES[name] ?? name;
    out.push({ title, first: false, unit: curves[0].unit, times: all.times,
      lines: [{ label: title, values: all.values, colour: lineColour(out.length, night), fill: true, stepped: true }] });
  }
  for (const k of kinds.value.filter((v) => v.group === 'Events' && v.timed && !names.has(GROWN[v.id])).slice(0, 4)) {
    const u = usage(r, k.events, mask);
    // Time that passes in a second is a number of threads.
    const threads = k.unit === 'ns';
    const title = threads ? `${k.label}: threads` : `${k.label} a second`;
    out.push({ title, first: false, unit: threads ? 'count' : k.unit, times: u.times, format: threads ? (v) => v.toFixed(1) : undefined,
      lines: [{ label: title, values: u.values, colour: lineColour(out.length, night), fill: true }] });
  }
  const waits = kinds.value.find((k) => k.id === 'off-cpu' && k.timed);
  if (waits) {
    const u = usage(r, waits.events, mask);
    out.push({ title: 'Threads waiting', first: false, unit: 'count', times: u.times, format: (v) => v.toFixed(1),
      lines: [{ label: 'Threads waiting', values: u.values, colour: lineColour(3, night), fill: true }] });
  }
  return out;
}

function memoryPanel(rss: Series[], heap: Series[], night: boolean): Panel {
  const joined = addCurves([...rss, ...heap]);
  const line = (label: string, curves: Series[], colour: number): Line | null => {
    if (!curves.length) return null;
    const all = addCurves(curves);
    const at = new Map(all.times.map((t, i) => [t, all.values[i]]));
    let last: number | null = null;
    const values = joined.times.map((t) => (last = at.get(t) ?? last));
    return { label, values, colour: lineColour(colour, night), fill: label === 'Heap', stepped: true };
  };
  const lines = [line('Resident', rss, 1), line('Heap', heap, 2)].filter((l): l is Line => l !== null);
  return { title: 'Memory', first: true, unit: 'bytes', times: joined.times, lines };
}

function Curve(props: { panel: Panel; height: number }) {
  const p = props.panel;
  return (
    <div class="panel">
      <h3>{p.title}</h3>
      <Chart label={p.title} times={p.times} lines={p.lines} unit={p.unit} format={p.format} extent={duration.value}
        range={route.value.range} choose={(range) => go({ range, zoom: null })} height={props.height} moments={recording.value!.head.marks} />
    </div>
  );
}

function MoreCurves(props: { all: Panel[] }) {
  const more = props.all.filter((p) => !p.first);
  if (!more.length) return null;
  return (
    <Card title="More over time">
      <div class="panel-grid">{more.map((p) => <Curve key={p.title} panel={p} height={104} />)}</div>
    </Card>
  );
}

function Curves(props: { all: Panel[] }) {
  const { all } = props;
  if (all.length && !all.some((p) => p.first)) return null;
  const held = recording.value!.head.events.some((e) => e.samples > 0);
  if (!all.length)
    return (
      <Card title="Over time">
        {held
          ? <Empty title="No times in this recording">It holds sums only, so there is nothing to draw over time.</Empty>
          : <Empty title="No samples were taken">What ran used too little CPU time for that, or sampling was not possible: a higher <code class="mono">--rate</code> meets shorter programs.</Empty>}
      </Card>
    );
  return (
    <Card title="Over time" aside={<span class="faint">drag to choose a time</span>}>
      {all.filter((p) => p.first).map((p) => <Curve key={p.title} panel={p} height={132} />)}
    </Card>
  );
}

function toggle(list: number[], item: number): number[] {
  return list.includes(item) ? list.filter((x) => x !== item) : [...list, item];
}

const ROWS_FIRST = 60;

function Processes() {
  const r = recording.value!;
  const k = kind.value;
  const [open, setOpen] = useState<Set<number>>(new Set());
  const [all, setAll] = useState(false);
  const rows = useMemo(() => (choice.value ? family(r, choice.value) : []), [r, choice.value, version.value]);
  const whole = rows.reduce((a, row) => a + row.self, 0);
  const heap = rows.some((row) => row.hasHeap);
  const rss = rows.some((row) => row.peakRss > 0);
  const live = r.head.meta.live && !r.head.meta.complete;
  const shown = all ? rows : rows.slice(0, ROWS_FIRST);
  const flip = (process: number) => {
    const next = new Set(open);
    if (!next.delete(process)) next.add(process);
    setOpen(next);
  };
  return (
    <Card title="Processes" aside={<span class="faint">click a process to see it alone</span>}>
      <div class="table-scroll" tabIndex={0} role="region" aria-label="Processes">
        <table class="family">
          <caption class="hidden">The process tree</caption>
          <thead>
            <tr>
              <th scope="col" class="fill">Process</th>
              <th scope="col" class="number">{k?.label ?? 'Value'}</th>
              <th scope="col" class="number bar">Share</th>
              {rss && <th scope="col" class="number" title={live ? 'Resident memory now' : 'The most resident memory'}>{live ? 'RSS' : 'Peak RSS'}</th>}
              {heap && <th scope="col" class="number wide-only">Heap peak</th>}
              {heap && <th scope="col" class="number">Live</th>}
              <th scope="col" class="wide-only life-head">Life</th>
              <th scope="col">{live ? 'State' : 'End'}</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <ProcessLines key={row.process} row={row} whole={whole} heap={heap} rss={rss} open={open.has(row.process)} flip={flip} />
            ))}
          </tbody>
        </table>
        {rows.length > shown.length && (
          <button type="button" class="more" onClick={() => setAll(true)}>Show all {count(rows.length)} processes</button>
        )}
      </div>
    </Card>
  );
}

/** Of what runs now, the present size; else the largest. */
function rssOf(row: ProcessRow): number {
  const { meta } = recording.value!.head;
  return meta.live && !meta.complete ? row.rss : row.peakRss;
}

function ProcessLines(props: { row: ProcessRow; whole: number; heap: boolean; rss: boolean; open: boolean; flip: (p: number) => void }) {
  const { row } = props;
  const r = recording.value!;
  const p = r.head.processes[row.process];
  const k = kind.value;
  const chosen = route.value.processes.includes(row.process);
  const choose = () => go({ processes: toggle(route.value.processes, row.process), zoom: null });
  const ended = howItEnded(p, r.head.meta.live);
  const from = (100 * p.start) / Math.max(duration.value, 1);
  const to = (100 * (p.end ?? duration.value)) / Math.max(duration.value, 1);
  return (
    <>
      <tr class={`opens ${chosen ? 'chosen' : ''}`} data-pid={p.pid} onClick={choose}>
        <td class="fill">
          <span class="process" style={{ paddingLeft: `${Math.min(row.depth, 12) * 16}px` }}>
            <button type="button" class="fold" aria-expanded={props.open} aria-label={`Threads of ${p.pid}`}
              onClick={(e) => (e.stopPropagation(), props.flip(row.process))}>
              {props.open ? '▾' : '▸'}
            </button>
            <button type="button" class="link" aria-pressed={chosen} title={p.arguments || p.exe || p.name}
              onClick={(e) => (e.stopPropagation(), choose())}>
              <span class="process-name">{p.name || 'process'}</span> <span class="pid">{p.pid}</span>
            </button>
            <span class="process-args" title={p.arguments}>{p.arguments}</span>
          </span>
        </td>
        <td class="number" data-column="self" data-value={row.self}>{formatValue(row.self, k?.unit ?? 'count')}</td>
        <td class="number bar"><Share part={row.self} whole={props.whole}>{percent(row.self, props.whole)}</Share></td>
        {props.rss && <td class="number" data-column="rss">{rssOf(row) ? bytes(rssOf(row)) : '–'}</td>}
        {props.heap && <td class="number wide-only">{row.hasHeap ? bytes(row.heapPeak) : '–'}</td>}
        {props.heap && <td class="number" data-column="live">{row.hasHeap ? bytes(row.heapLive) : '–'}</td>}
        <td class="wide-only"><span class="life" aria-hidden="true"><span style={{ left: `${from}%`, width: `${Math.max(1, to - from)}%` }} /></span></td>
        <td><span class={`state ${p.signal || (p.status ?? 0) !== 0 ? 'bad' : p.ended || !r.head.meta.live ? '' : 'on'}`}>{ended}</span></td>
      </tr>
      {props.open && row.threads.map((thread, i) =>
        <ThreadLine key={thread} thread={thread} part={row.parts[i]} whole={props.whole} depth={row.depth} heap={props.heap} rss={props.rss} />)}
    </>
  );
}

function ThreadLine(props: { thread: number; part: number; whole: number; depth: number; heap: boolean; rss: boolean }) {
  const r = recording.value!;
  const t = r.head.threads[props.thread];
  const chosen = route.value.threads.includes(props.thread);
  const choose = () => go({ threads: toggle(route.value.threads, props.thread), zoom: null });
  return (
    <tr class={`thread-row opens ${chosen ? 'chosen' : ''}`} onClick={choose}>
      <td class="fill" colSpan={1}>
        <span class="process" style={{ paddingLeft: `${Math.min(props.depth, 12) * 16 + 34}px` }}>
          <button type="button" class="link" aria-pressed={chosen} onClick={(e) => (e.stopPropagation(), choose())}>
            {t.name || 'thread'} <span class="pid">{t.tid}</span>
          </button>
        </span>
      </td>
      <td class="number" title={t.cpu ? `${formatDuration(t.cpu)} of CPU time by the kernel's count` : undefined}>{formatValue(props.part, kind.value?.unit ?? 'count')}</td>
      <td class="number bar"><Share part={props.part} whole={props.whole} tone="soft">{percent(props.part, props.whole)}</Share></td>
      {props.rss && <td />}
      {props.heap && <td class="wide-only" />}
      {props.heap && <td />}
      <td class="wide-only" />
      <td />
    </tr>
  );
}

/** The first picture does not wait for the sums of all functions. */
function Hot() {
  const [drawn, setDrawn] = useState(false);
  useEffect(() => {
    let timer = 0;
    const frame = requestAnimationFrame(() => (timer = window.setTimeout(() => setDrawn(true), 0)));
    return () => (cancelAnimationFrame(frame), clearTimeout(timer));
  }, []);
  if (drawn && coded.value) return <HotList />;
  return <Card title="Hot functions"><p class="table-empty">Adding up…</p></Card>;
}

function HotList() {
  const k = kind.value;
  const s = sums.value;
  const top = useMemo(() => functionRows.value.filter((f) => f.self > 0).sort((a, b) => b.self - a.self).slice(0, 10), [functionRows.value]);
  if (!s?.value || !k) return <Card title="Hot functions"><Empty title="Nothing was counted">No samples in what is chosen.</Empty></Card>;
  return (
    <Card title="Hot functions" aside={<button type="button" class="quiet" onClick={() => go({ view: 'flame', tab: 'table' })}>All</button>}>
      <ol class="hot">
        {top.map((f) => (
          <li key={f.symbol}>
            <button type="button" onClick={() => openSymbol(f.symbol)} title={f.name}>
              <Share part={f.self} whole={top[0].self}><FunctionName symbol={f.symbol} name={f.name} /></Share>
              <span class="hot-number">{percent(f.self, s.value)}</span>
            </button>
          </li>
        ))}
      </ol>
    </Card>
  );
}

function Accounting() {
  version.value;
  const { head } = recording.value!;
  const lost = (event: number) => head.losses.filter((l) => l.event === event).reduce((a, l) => a + l.count, 0);
  const why = [...new Set(head.losses.filter((l) => l.count).map((l) => l.reason))].join(', ');
  const events = head.events.map((e, i) => ({ e, i })).filter(({ e, i }) => (e.samples || lost(i)) && (!e.name.startsWith('heap:') || e.name === 'heap:allocated'));
  const stacks = head.cost.stacks_whole + head.cost.stacks_cut;
  return (
    <Card title="Accounting">
      {events.length > 0 && <table class="accounting">
        <caption class="hidden">What was generated, recorded and lost</caption>
        <thead>
          <tr><th scope="col" class="fill">Event</th><th scope="col" class="number">Generated</th><th scope="col" class="number">Recorded</th><th scope="col" class="number">Lost</th></tr>
        </thead>
        <tbody>
          {events.map(({ e, i }) => (
            <tr key={e.name}>
              <td class="fill"><span class="mono">{e.name}</span></td>
              <td class="number">{count(e.samples + lost(i))}</td>
              <td class="number">{count(e.samples)}</td>
              <td class={`number ${lost(i) ? 'worse' : ''}`}>{count(lost(i))}</td>
            </tr>
          ))}
        </tbody>
      </table>}
      <dl class="cost">
        {why && <><dt>Lost because</dt><dd>{why}</dd></>}
        {stacks > 0 && <><dt>Stacks cut short</dt><dd>{count(head.cost.stacks_cut)} of {count(stacks)}</dd></>}
        {head.cost.collector_cpu > 0 && <><dt>Profiler CPU</dt><dd>{formatDuration(head.cost.collector_cpu)}</dd></>}
        {head.cost.target_extra > 0 && <><dt>Taken from the target</dt><dd>{formatDuration(head.cost.target_extra)}</dd></>}
        {head.cost.collector_rss > 0 && <><dt>Profiler memory</dt><dd>{bytes(head.cost.collector_rss)}</dd></>}
        {head.cost.bytes_written > 0 && <><dt>Written</dt><dd>{bytes(head.cost.bytes_written)}</dd></>}
      </dl>
    </Card>
  );
}

/** Facts that other parts of the page tell. */
const TOLD = new Set(['start', 'wall_start', 'command', 'heap_tree_peak', 'heap_tree_peak_time', 'status']);

const NAMES: Record<string, string> = { rate: 'Rate asked for, in Hz', cpus: 'CPUs', mode: 'Made by' };

function Notes() {
  version.value;
  const { head } = recording.value!;
  const facts = Object.entries(head.meta.facts).filter(([key]) => !TOLD.has(key));
  const cut = !head.meta.complete && !head.meta.live;
  if (!facts.length && !cut && !head.notes.length && !head.marks?.length) return null;
  return (
    <Card title="About this recording">
      {cut && <p class="notice">The recording was cut short; everything up to there is shown.</p>}
      {head.notes.length > 0 && (
        <ul class="notes">
          {head.notes.map((n, i) => <li key={i} class={n.warning ? 'notice' : ''}>{n.text}</li>)}
        </ul>
      )}
      {(head.marks?.length ?? 0) > 0 && (
        <ul class="notes marks" aria-label="Marks">
          {head.marks!.map((m, i) => <li key={i}><span class="mark-time">{moment(m.time, 1e6)}</span> {m.text}</li>)}
        </ul>
      )}
      <dl class="cost">
        {facts.map(([key, text]) => <><dt>{NAMES[key] ?? capital(key.replace(/_/g, ' '))}</dt><dd title={text}>{text}</dd></>)}
      </dl>
    </Card>
  );
}
