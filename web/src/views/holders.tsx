// Who holds memory: at a peak, at the end, what was never freed, what went at once, what another
// thread freed.

import { useMemo } from 'preact/hooks';
import { bytes, count, percent } from '../data/format.ts';
import { callersText, sites, type Site } from '../data/sites.ts';
import { go, route } from '../route.ts';
import { choiceOf, held, kinds, recording, threadMask, version } from '../store.ts';
import { Card, Empty, Place, Segments, Share } from '../ui/parts.tsx';
import { rowsOf, useReady, type TableRow } from '../ui/ready.ts';
import { Table, type Column } from '../ui/table.tsx';
import { FunctionName, openSymbol } from './flame.tsx';

const TABS: Record<string, string> = {
  'heap:tree-peak': 'At the peak',
  'heap:peak': 'At each own peak',
  'heap:live': 'Live',
  inuse_space: 'Live',
  leaks: 'Not freed',
  'heap:allocated': 'Allocated',
  alloc_space: 'Allocated',
  'heap:temporary': 'Temporary',
  'heap:released': 'Freed by others',
};

const PEAK = /^heap:peak-(\d+)$/;
const SNAPSHOT = /^heap:snapshot-(\d+)$/;

/** The peak that is chosen, or 0. */
export function chosenPeak(): number {
  return Number(PEAK.exec(route.value.value)?.[1] ?? 0);
}

export function choosePeak(number: number): void {
  go({ value: `heap:peak-${number}` });
}

function useTabs(): { id: string; label: string }[] {
  const there = kinds.value.filter((k) => k.group === 'Memory').map((k) => k.id);
  const leaks = useReady('leaks') !== null;
  const out = Object.keys(TABS).filter((id) => (id === 'leaks' ? leaks : there.includes(id))).map((id) => ({ id, label: TABS[id] }));
  for (const id of there) {
    const number = SNAPSHOT.exec(id)?.[1];
    if (number) out.push({ id, label: `Snapshot ${number}` });
  }
  const peak = chosenPeak();
  if (peak) out.unshift({ id: `heap:peak-${peak}`, label: `At peak ${peak}` });
  return out;
}

export function Holders() {
  const tabs = useTabs();
  const { value, processes } = route.value;
  const usual = processes.length && tabs.some((t) => t.id === 'heap:peak') ? 'heap:peak' : tabs[0]?.id;
  const chosen = tabs.some((t) => t.id === value) ? value : usual;
  if (!chosen) return <Card title="Who holds it"><Empty title="No allocations were seen yet" /></Card>;
  const counted = kinds.value.some((k) => k.id === chosen);
  const drawn = chosen === 'leaks' && kinds.value.some((k) => k.id === 'heap:live') ? 'heap:live' : counted ? chosen : '';
  return (
    <Card class="holders" title="Who holds it" aside={
      drawn && <button type="button" onClick={() => go({ view: 'flame', tab: 'graph', value: drawn, zoom: null })}>Open as flame graph</button>}>
      <div class="card-tools">
        <Segments label="What is counted" chosen={chosen} choose={(id) => go({ value: id })} choices={tabs} />
      </div>
      {chosen === 'leaks' ? <Leaks /> : counted ? <Sites id={chosen} /> : <Held peak={chosenPeak()} />}
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
  ];
  if (rows.some((s) => s.place)) columns.push({ id: 'place', heading: 'Source', by: (s) => s.place, class: 'wide-only', show: (s) => <Place text={s.place} /> });
  return <Table caption={k.label} rows={rows} keyOf={(s) => `${s.symbol}:${s.place}`} sort="bytes" columns={columns}
    open={(s) => (go({ value: props.id }, true), openSymbol(s.symbol))} rowsFirst={40} empty="Nothing of this in what is chosen." />;
}

/** Stacks as the report has them. */
export function StackTable(props: { caption: string; rows: TableRow[]; whole: number; noun: string; empty: string }) {
  const size = (s: TableRow) => Number(s.value);
  const columns: Column<TableRow>[] = [
    { id: 'bytes', heading: 'Bytes', number: true, by: size, show: (s) => bytes(size(s)) },
    { id: 'share', heading: 'Share', number: true, by: size, class: 'bar', show: (s) => <Share part={size(s)} whole={props.whole}>{percent(size(s), props.whole)}</Share> },
    { id: 'count', heading: props.noun, number: true, by: (s) => Number(s.count), show: (s) => count(Number(s.count ?? 0)) },
    { id: 'stack', heading: 'Stack', class: 'fill mono', show: (s) => <span title={String(s.whole_stack ?? s.stack)}>{String(s.stack)}</span> },
  ];
  if (props.rows.some((s) => s.place)) columns.push({ id: 'place', heading: 'Source', class: 'wide-only', show: (s) => <Place text={String(s.place ?? '')} /> });
  return <Table caption={props.caption} rows={props.rows} keyOf={(s) => `${s.whole_stack ?? s.stack} ${s.place ?? ''}`} sort="bytes" columns={columns} rowsFirst={40} empty={props.empty} />;
}

function Held(props: { peak: number }) {
  const view = useReady('held', { peak: String(props.peak), top: '200' });
  if (!view) return <p class="table-empty" role="status">Asking who held memory then…</p>;
  return <StackTable caption={`Held at peak ${props.peak}`} rows={rowsOf(view.sections.stacks)} whole={Number(view.sections.held?.facts?.bytes ?? 0)}
    noun="Blocks" empty="Nothing is known of that time." />;
}

function Leaks() {
  const { processes } = route.value;
  const view = useReady('leaks');
  const facts = view?.sections.leaks?.facts;
  const suppressed = Number(facts?.suppressed ?? 0);
  return (
    <>
      <StackTable caption="Not freed" rows={rowsOf(view?.sections.stacks)} whole={Number(facts?.leaked ?? 0)} noun="Blocks"
        empty="Everything was freed by the processes that ended in order." />
      {processes.length > 0 && <p class="card-foot faint">Of all processes together: the report tells what was not freed by the tree.</p>}
      {suppressed > 0 && <p class="card-foot faint">{bytes(suppressed)} that runtimes keep on purpose are left out.</p>}
    </>
  );
}
