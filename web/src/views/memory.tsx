// Memory: heap and resident size over time with numbered peaks, who held what at them, what was
// not freed, what was freed at once.

import { useMemo, useState } from 'preact/hooks';
import { bytes, count, moment, percent } from '../data/format.ts';
import type { Curve, Recording } from '../data/recording.ts';
import { addCurves, closedCurves, resample, unionTimes } from '../data/series.ts';
import { callersText, sites, type Site } from '../data/sites.ts';
import { lineColour } from '../paint/colours.ts';
import { go, route } from '../route.ts';
import { choiceOf, duration, held, kinds, recording, threadMask, version } from '../store.ts';
import { Chart, type Line, type Mark } from '../ui/chart.tsx';
import { Card, Empty, Fact, Place, Segments, Share } from '../ui/parts.tsx';
import { Table, type Column } from '../ui/table.tsx';
import { dark } from '../ui/theme.ts';
import { FunctionName, openSymbol } from './flame.tsx';

const PROCESSES = 5;
const THREADS = 6;

interface Peak {
  number: number;
  time: number;
  value: number;
  process: string;
  largest: number;
}

function treePeaks(r: Recording): Peak[] {
  const rows = r.head.tables?.peaks?.sections.peaks?.rows ?? [];
  return rows.map((row) => ({
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
      {heap ? <Holders /> : (
        <Card title="Who holds it">
          <Empty title="Only sizes were recorded">Record with <code class="mono">--heap</code> to see which code allocates.</Empty>
        </Card>
      )}
    </div>
  );
}

function Totals() {
  const r = recording.value!;
  const heads = r.head.heaps.filter((h) => !route.value.processes.length || route.value.processes.includes(h.process));
  const add = (f: (h: (typeof heads)[number]) => number) => heads.reduce((a, h) => a + f(h), 0);
  const leaks = r.head.tables?.leaks?.sections.leaks?.facts;
  const peaks = treePeaks(r);
  const highest = peaks.reduce((a, p) => Math.max(a, p.value), 0);
  const temporary = r.head.events.find((e) => e.name === 'heap:temporary');
  const allocated = r.head.events.find((e) => e.name === 'heap:allocated');
  if (!heads.length) return null;
  return (
    <dl class="facts">
      {highest > 0 && <Fact label="Peak of the tree" value={bytes(highest)} note={`after ${moment(peaks.find((p) => p.value === highest)!.time, 1e6)}`} />}
      <Fact label="Live at the end" value={bytes(add((h) => h.live))} note={`${count(add((h) => h.live_blocks))} blocks`} />
      {leaks && <Fact label="Not freed" value={bytes(Number(leaks.leaked ?? 0))} note="by processes that ended in order" />}
      <Fact label="Allocations" value={count(add((h) => h.allocations))} note={allocated ? `${bytes(allocated.value)} in all` : undefined}
        tone={add((h) => h.lost) ? 'warn' : undefined} />
      {temporary && allocated && allocated.samples > 0 && (
        <Fact label="Temporary" value={percent(temporary.samples, allocated.samples)} note="of allocations, freed at once" />
      )}
    </dl>
  );
}

/** Lines for all processes together, or for one with its threads. */
function linesFor(r: Recording, curves: Curve[], process: number, night: boolean): { times: number[]; lines: Line[] } {
  const of = (name: string, p: number, t: boolean) => curves.filter((c) => c.name === name && (p < 0 || c.process === p) && (t ? c.thread >= 0 : c.thread < 0));
  const highest = (c: Curve) => c.values.reduce((a, v) => Math.max(a, v), 0);
  const heap = of('heap', process, false).sort((a, b) => highest(b) - highest(a));
  const rss = of('rss', process, false);
  const threads = process < 0 ? [] : of('heap', process, true).sort((a, b) => highest(b) - highest(a)).slice(0, THREADS);
  const parts = process < 0 && heap.length > 1 ? heap.slice(0, PROCESSES) : [];
  const times = unionTimes([...heap, ...rss, ...threads]);
  const lines: Line[] = [];
  const whole = (label: string, list: Curve[], colour: number, more: Partial<Line>) => {
    if (!list.length) return;
    const sum = addCurves(list);
    const values = resample({ ...list[0], times: sum.times, values: sum.values }, times);
    lines.push({ label, values, colour: lineColour(colour, night), stepped: true, ...more });
  };
  whole(process < 0 && heap.length > 1 ? 'Heap of all' : 'Heap', heap, 0, { fill: true });
  whole(process < 0 && rss.length > 1 ? 'Resident of all' : 'Resident', rss, 7, { dashed: true });
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
  const peaks = useMemo<Peak[]>(() => {
    if (one < 0) return treePeaks(r);
    return r.head.heaps.filter((h) => h.process === one)
      .map((h, i) => ({ number: i + 1, time: h.peak_time, value: h.peak, process: processLabel(r, one), largest: 0 }));
  }, [r, version.value, one]);
  const marks = useMemo<Mark[]>(() => peaks.map((p) => ({ time: p.time, value: p.value, label: String(p.number) })), [peaks]);
  const choices = [...new Set(props.curves.filter((c) => c.process >= 0).map((c) => c.process))];
  return (
    <Card title={one < 0 ? 'Memory over time' : `Memory of ${processLabel(r, one)}`} aside={
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
          choose={(range) => go({ range })} height={260} marks={marks} />
      </div>
      {peaks.length > 0 && (
        <table class="peaks">
          <caption class="hidden">Numbered peaks</caption>
          <thead><tr><th scope="col">Peak</th><th scope="col" class="number">After</th><th scope="col" class="number">Size</th>
            {one < 0 && <th scope="col" class="number">Largest part</th>}<th scope="col" class="fill">In</th></tr></thead>
          <tbody>
            {peaks.slice(0, 12).map((p) => (
              <tr key={p.number}>
                <td><span class="peak-number">{p.number}</span></td>
                <td class="number">{moment(p.time, 1e6)}</td>
                <td class="number">{bytes(p.value)}</td>
                {one < 0 && <td class="number">{p.largest ? bytes(p.largest) : '–'}</td>}
                <td class="fill mono">{p.process}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Card>
  );
}

const TABS: Record<string, string> = {
  'heap:tree-peak': 'At the peak',
  'heap:peak': 'At each peak',
  'heap:live': 'Live at the end',
  leaks: 'Not freed',
  'heap:allocated': 'Allocated',
  'heap:temporary': 'Temporary',
};

function Holders() {
  const r = recording.value!;
  const there = kinds.value.filter((k) => k.group === 'Memory').map((k) => k.id);
  const ids = Object.keys(TABS).filter((id) => (id === 'leaks' ? r.head.tables?.leaks : there.includes(id)));
  const [chosen, setChosen] = useState(route.value.processes.length && ids.includes('heap:peak') ? 'heap:peak' : ids[0]);
  if (!ids.length) return <Card title="Who holds it"><Empty title="No allocations were seen" /></Card>;
  return (
    <Card class="holders" title="Who holds it" aside={
      chosen !== 'leaks' && <button type="button" onClick={() => go({ view: 'flame', tab: 'graph', value: chosen, zoom: null })}>Open as flame graph</button>}>
      <div class="card-tools">
        <Segments label="What is counted" chosen={chosen} choose={setChosen} choices={ids.map((id) => ({ id, label: TABS[id] }))} />
      </div>
      {chosen === 'leaks' ? <Leaks /> : <Sites id={chosen} />}
    </Card>
  );
}

function Sites(props: { id: string }) {
  const r = recording.value!;
  const { tree } = held.value!;
  const k = kinds.value.find((v) => v.id === props.id)!;
  const mask = threadMask.value;
  const rows = useMemo(() => sites(tree, choiceOf(k, r, mask, null)), [r, version.value, k, mask]);
  const whole = rows.reduce((a, s) => a + s.bytes, 0);
  const counted = rows.some((s) => s.count);
  const columns: Column<Site>[] = [
    { id: 'bytes', heading: 'Bytes', number: true, by: (s) => s.bytes, show: (s) => bytes(s.bytes) },
    { id: 'share', heading: 'Share', number: true, by: (s) => s.bytes, class: 'bar', show: (s) => <Share part={s.bytes} whole={whole}>{percent(s.bytes, whole)}</Share> },
    ...(counted ? [{ id: 'count', heading: k.noun === 'blocks' ? 'Blocks' : 'Allocations', number: true, by: (s: Site) => s.count, show: (s: Site) => count(s.count) }] : []),
    { id: 'name', heading: 'Asked for by', by: (s) => s.name, class: 'fill', show: (s) => (
      <span class="site">
        <FunctionName symbol={s.symbol} name={s.name} />
        <span class="site-callers">{callersText(tree, s.node, 5) && `← ${callersText(tree, s.node, 5)}`}</span>
      </span>) },
    { id: 'place', heading: 'Source', by: (s) => s.place, class: 'wide-only', show: (s) => <Place text={s.place} /> },
  ];
  return <Table caption={k.label} rows={rows} keyOf={(s) => `${s.symbol}:${s.place}`} sort="bytes" columns={columns}
    open={(s) => (go({ value: props.id }, true), openSymbol(s.symbol))} rowsFirst={40} empty="Nothing of this in what is chosen." />;
}

function Leaks() {
  const r = recording.value!;
  const view = r.head.tables!.leaks!;
  const rows = (view.sections.stacks?.rows ?? []).filter((row) => !row.rest);
  const whole = Number(view.sections.leaks?.facts?.leaked ?? 0);
  const suppressed = Number(view.sections.leaks?.facts?.suppressed ?? 0);
  const columns: Column<Record<string, unknown>>[] = [
    { id: 'bytes', heading: 'Bytes', number: true, by: (s) => Number(s.value), show: (s) => bytes(Number(s.value)) },
    { id: 'share', heading: 'Share', number: true, by: (s) => Number(s.value), class: 'bar', show: (s) => <Share part={Number(s.value)} whole={whole}>{percent(Number(s.value), whole)}</Share> },
    { id: 'count', heading: 'Blocks', number: true, by: (s) => Number(s.count), show: (s) => count(Number(s.count ?? 0)) },
    { id: 'stack', heading: 'Stack', class: 'fill mono', show: (s) => <span title={String(s.whole_stack ?? s.stack)}>{String(s.stack)}</span> },
    { id: 'place', heading: 'Source', class: 'wide-only', show: (s) => <Place text={String(s.place ?? '')} /> },
  ];
  return (
    <>
      <Table caption="Not freed" rows={rows} keyOf={(s) => String(s.whole_stack ?? s.stack)} sort="bytes" columns={columns} rowsFirst={40}
        empty="Everything was freed by the processes that ended in order." />
      {suppressed > 0 && <p class="card-foot faint">{bytes(suppressed)} that runtimes keep on purpose are left out.</p>}
    </>
  );
}
