// Memory: heap and resident size over time with numbered peaks, who held what at them, what was
// not freed, what was freed at once.

import { useMemo } from 'preact/hooks';
import { bytes, count, moment, percent, plural } from '../data/format.ts';
import type { Curve, Recording } from '../data/recording.ts';
import { addCurves, closedCurves, resample, unionTimes } from '../data/series.ts';
import { lineColour } from '../paint/colours.ts';
import { go, route } from '../route.ts';
import { duration, kinds, recording, threadMask, version } from '../store.ts';
import { Chart, type Line, type Mark } from '../ui/chart.tsx';
import { Card, Empty, Fact } from '../ui/parts.tsx';
import { rowsOf, useReady } from '../ui/ready.ts';
import { dark } from '../ui/theme.ts';
import { choosePeak, chosenPeak, Holders } from './holders.tsx';
import { Ledger, Ownership } from './ownership.tsx';

const PROCESSES = 5;
const THREADS = 6;
const PEAKS = 12;

interface Peak {
  number: number;
  time: number;
  value: number;
  process: string;
  largest: number;
}

function usePeaks(): Peak[] {
  return rowsOf(useReady('peaks')?.sections.peaks).map((row) => ({
    number: Number(row.number),
    time: Number(row.time),
    value: Number(row.value),
    process: String(row.process ?? ''),
    largest: Number(row.largest ?? 0),
  }));
}

function processLabel(r: Recording, process: number): string {
  const p = r.head.processes[process];
  return p ? `${p.name || 'process'} ${p.pid}` : 'process';
}

export function Memory() {
  version.value;
  const r = recording.value!;
  const heap = kinds.value.some((k) => k.group === 'Memory') || r.head.heaps.length > 0;
  const curves = closedCurves(r).filter((c) => c.name === 'rss' || c.name === 'heap');
  if (!heap && !curves.length)
    return (
      <div class="view">
        <Empty title="Memory was not recorded">
          Record with <code class="mono">sonde run --heap</code> to see who allocates, what is live at the peak, and what is never freed.
        </Empty>
      </div>
    );
  return (
    <div class="view memory">
      <Totals />
      {curves.length > 0 && <Over curves={curves} />}
      {heap ? <><Holders /><Ownership /><Ledger /></> : (
        <Card title="Who holds it">
          <Empty title="Only sizes were recorded">Record with <code class="mono">--heap</code> to see which code allocates.</Empty>
        </Card>
      )}
    </div>
  );
}

/** While processes run, their curves say what they hold. */
function liveNow(r: Recording): number {
  const { processes } = route.value;
  return r.curves.filter((c) => c.name === 'heap' && c.thread < 0 && c.process >= 0 && !r.head.processes[c.process].ended &&
    (!processes.length || processes.includes(c.process))).reduce((a, c) => a + (c.values[c.values.length - 1] ?? 0), 0);
}

/** How often and how much of an event, of the threads that are chosen. */
function amount(r: Recording, name: string): { count: number; value: number } {
  const event = r.head.events.findIndex((e) => e.name === name);
  const mask = threadMask.value;
  const rows = (r.head.sums ?? []).filter(([e, thread]) => e === event && (!mask || mask[thread]));
  return { count: rows.reduce((a, row) => a + row[2], 0), value: rows.reduce((a, row) => a + row[3], 0) };
}

/** The highest that each chosen process was, one after the other: they need not have been so together. */
function ownPeaks(r: Recording): number {
  const { processes } = route.value;
  return r.curves.filter((c) => c.name === 'heap' && c.thread < 0 && processes.includes(c.process))
    .reduce((a, c) => a + c.values.reduce((most, v) => Math.max(most, v), 0), 0);
}

function PeakFact(props: { live: number; running: boolean }) {
  const r = recording.value!;
  const peaks = usePeaks();
  const { processes } = route.value;
  if (processes.length) {
    const heads = r.head.heaps.filter((h) => processes.includes(h.process));
    const own = Math.max(ownPeaks(r), heads.reduce((a, h) => a + h.peak, 0));
    return own ? <Fact label="Peak" value={bytes(own)} note={processes.length > 1 ? 'of each chosen process, added up' : 'of the chosen process'} /> : null;
  }
  // Peaks are asked for now and then; what is held at this moment may be more already.
  const peak = peaks.reduce((a, p) => (p.value > a.value ? p : a), { value: 0, time: 0 });
  const rising = props.running && props.live > peak.value;
  if (!peak.value && !rising) return null;
  return <Fact label="Peak of the tree" value={bytes(rising ? props.live : peak.value)} note={rising ? 'now' : `after ${moment(peak.time, 1e6)}`} />;
}

function Totals() {
  const r = recording.value!;
  const { processes } = route.value;
  const heads = r.head.heaps.filter((h) => !processes.length || processes.includes(h.process));
  const add = (f: (h: (typeof heads)[number]) => number) => heads.reduce((a, h) => a + f(h), 0);
  const leaks = useReady('leaks')?.sections.leaks?.facts;
  const temporary = amount(r, 'heap:temporary');
  const allocated = amount(r, 'heap:allocated');
  const running = r.head.meta.live && !r.head.meta.complete;
  const live = running ? liveNow(r) : add((h) => h.live);
  if (!heads.length && !(running && allocated.count)) return null;
  return (
    <dl class="facts">
      <PeakFact live={live} running={running} />
      <Fact label={running ? 'Live now' : 'Live at the end'} value={bytes(live)}
        note={running ? (processes.length ? 'by what is chosen' : 'by all that run') : heads.length > 1 ? 'each process at its own end' : plural(add((h) => h.live_blocks), 'block')} />
      {leaks && <Fact label="Not freed" value={bytes(Number(leaks.leaked ?? 0))} note={processes.length ? 'by all processes that ended in order' : 'by processes that ended in order'} />}
      <Fact label="Allocations" value={count(running ? allocated.count : add((h) => h.allocations))} note={allocated.value ? `${bytes(allocated.value)} in all` : undefined}
        tone={add((h) => h.lost) ? 'warn' : undefined} />
      {allocated.count > 0 && temporary.count > 0 && (
        <Fact label="Temporary" value={percent(temporary.count, allocated.count)} note="of allocations, freed at once" />
      )}
    </dl>
  );
}

/** Lines for all processes together, or for one with its threads. */
function linesFor(r: Recording, curves: Curve[], process: number, night: boolean): { times: number[]; lines: Line[] } {
  const of = (name: string, p: number, t: boolean) => curves.filter((c) => c.name === name && (p < 0 || c.process === p) && (t ? c.thread >= 0 : c.thread < 0));
  const highest = (c: Curve) => c.values.reduce((a, v) => Math.max(a, v), 0);
  const heap = of('heap', process, false).filter((c) => c.process >= 0).sort((a, b) => highest(b) - highest(a));
  const total = curves.find((c) => c.name === 'heap' && c.process < 0); // knows which peaks did not meet
  const rss = of('rss', process, false);
  const threads = process < 0 ? [] : of('heap', process, true).sort((a, b) => highest(b) - highest(a)).slice(0, THREADS);
  const sizes = heap.length ? heap : [...rss].sort((a, b) => highest(b) - highest(a));
  const parts = process < 0 && sizes.length > 1 ? sizes.slice(0, PROCESSES) : [];
  const times = unionTimes([...heap, ...rss, ...threads, ...(process < 0 && total ? [total] : [])]);
  const lines: Line[] = [];
  const whole = (label: string, list: Curve[], colour: number, more: Partial<Line>) => {
    if (!list.length) return;
    const sum = list.length > 1 ? { ...list[0], ...addCurves(list) } : list[0];
    const values = resample(sum, times);
    lines.push({ label, values, colour: lineColour(colour, night), stepped: true, ...more });
  };
  whole(process < 0 && heap.length > 1 ? 'Heap of all' : 'Heap', process < 0 && total ? [total] : heap, 0, { fill: true });
  whole(process < 0 && rss.length > 1 ? 'Resident of all' : 'Resident', rss, heap.length ? 7 : 0, heap.length ? { dashed: true } : { fill: true });
  parts.forEach((c, i) => lines.push({ label: processLabel(r, c.process), values: resample(c, times), colour: lineColour(i + 1, night), stepped: true }));
  threads.forEach((c, i) => {
    const t = r.head.threads[c.thread];
    lines.push({ label: `${t.name || 'thread'} ${t.tid}`, values: resample(c, times), colour: lineColour(i + 1, night), stepped: true });
  });
  return { times, lines };
}

function Over(props: { curves: Curve[] }) {
  const r = recording.value!;
  const night = dark.value;
  const { processes } = route.value;
  const one = processes.length === 1 ? processes[0] : -1;
  const { times, lines } = useMemo(() => linesFor(r, props.curves, one, night), [r, version.value, one, night]);
  const all = usePeaks();
  const own = r.head.heaps.filter((h) => h.process === one)
    .map((h, i) => ({ number: i + 1, time: h.peak_time, value: h.peak, process: processLabel(r, one), largest: 0 }));
  const peaks = one < 0 ? all : own;
  const marks = useMemo<Mark[]>(() => peaks.map((p) => ({ time: p.time, value: p.value, label: String(p.number) })), [JSON.stringify(peaks)]);
  const choices = [...new Set(props.curves.filter((c) => c.process >= 0).map((c) => c.process))];
  const what = props.curves.some((c) => c.name === 'heap') ? 'Memory' : 'Resident memory';
  return (
    <Card title={one < 0 ? `${what} over time` : `${what} of ${processLabel(r, one)}`} aside={
      choices.length > 1 && (
        <select aria-label="Whose memory" value={one} onChange={(e) => {
          const p = Number(e.currentTarget.value);
          go({ processes: p < 0 ? [] : [p] });
        }}>
          <option value={-1}>all processes together</option>
          {choices.map((p) => <option key={p} value={p}>{processLabel(r, p)}</option>)}
        </select>
      )}>
      <div class="panel">
        <Chart label="Memory over time" times={times} lines={lines} unit="bytes" extent={duration.value} range={route.value.range}
          choose={(range) => go({ range })} height={260} marks={marks} moments={r.head.marks} />
      </div>
      {peaks.length > 0 && <PeakTable peaks={peaks} whole={one < 0} />}
    </Card>
  );
}

/** As many as there is room for, in the order of time. */
function highest(peaks: Peak[]): Peak[] {
  return [...peaks].sort((a, b) => b.value - a.value).slice(0, PEAKS).sort((a, b) => a.time - b.time);
}

function PeakTable(props: { peaks: Peak[]; whole: boolean }) {
  const chosen = props.whole ? chosenPeak() : 0;
  const show = (p: Peak) => (props.whole ? choosePeak(p.number) : go({ value: 'heap:peak' }));
  return (
    <table class="peaks">
      <caption class="hidden">Numbered peaks</caption>
      <thead><tr><th scope="col">Peak</th><th scope="col" class="number">After</th><th scope="col" class="number">Size</th>
        {props.whole && <th scope="col" class="number">Largest part</th>}<th scope="col" class="fill">In</th><th scope="col"><span class="hidden">Stacks</span></th></tr></thead>
      <tbody>
        {highest(props.peaks).map((p) => (
          <tr key={p.number} class={`opens ${p.number === chosen ? 'chosen' : ''}`} onClick={() => show(p)}>
            <td><span class="peak-number">{p.number}</span></td>
            <td class="number">{moment(p.time, 1e6)}</td>
            <td class="number">{bytes(p.value)}</td>
            {props.whole && <td class="number">{p.largest ? bytes(p.largest) : '–'}</td>}
            <td class="fill mono">{p.process}</td>
            <td><button type="button" class="quiet" aria-pressed={p.number === chosen} aria-label={`What is under peak ${p.number}`}
              onClick={(e) => (e.stopPropagation(), show(p))}>What is under it</button></td>
          </tr>
        ))}
      </tbody>
      {props.peaks.length > PEAKS && (
        <tfoot><tr><td colSpan={props.whole ? 6 : 5} class="faint">the {PEAKS} highest of {props.peaks.length} peaks</td></tr></tfoot>
      )}
    </table>
  );
}
