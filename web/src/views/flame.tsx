// Flame: the graph, its functions as a table, one function between callers and callees.

import { useMemo, useState } from 'preact/hooks';
import { capital, change, count, percent, plural, value as formatValue } from '../data/format.ts';
import { layOut, type Layout } from '../data/layout.ts';
import { callees, callers } from '../data/sandwich.ts';
import type { FunctionRow, Sums } from '../data/sums.ts';
import { countsItself } from '../data/values.ts';
import { changeColour, kindFill, kindName, KINDS, moduleColour, Painter, palette } from '../paint/colours.ts';
import { FLAME_TABS, go, route, type FlameTab } from '../route.ts';
import { beforeRows, comparison, functionRows, kind, layout, pattern, recording, sums } from '../store.ts';
import { copied, copyText } from '../ui/copy.ts';
import { Empty, Place, Segments, Share, Swatch } from '../ui/parts.tsx';
import { Table, type Column } from '../ui/table.tsx';
import { dark } from '../ui/theme.ts';
import { describeNode, FlameGraph } from './flame_graph.tsx';
import { Lines } from './lines.tsx';

const TABS: Record<FlameTab, string> = { graph: 'Graph', sandwich: 'Sandwich', table: 'Table', lines: 'Source lines' };

export function Flame() {
  const { tab, shape, colour } = route.value;
  const s = sums.value;
  return (
    <div class="view flame-view">
      <div class="toolbar">
        <Segments label="Form" chosen={tab} choose={(t) => go({ tab: t })}
          choices={FLAME_TABS.map((id) => ({ id, label: TABS[id] }))} />
        {tab === 'graph' && (
          <Segments label="Direction" chosen={shape} choose={(x) => go({ shape: x }, true)}
            choices={[{ id: 'icicle', label: 'Icicle', hint: 'Callers above' }, { id: 'flame', label: 'Flame', hint: 'Callers below' }]} />
        )}
        {(tab === 'sandwich' || (tab === 'graph' && !comparison.value)) && (
          <Segments label="Colour" chosen={colour} choose={(c) => go({ colour: c }, true)}
            choices={[{ id: 'kind', label: 'Kind', hint: 'Colour by kind of code' }, { id: 'module', label: 'Module', hint: 'Colour by module' }]} />
        )}
        {tab === 'sandwich' ? <CodeLegend /> : tab === 'graph' && (comparison.value ? <ChangeLegend /> : <CodeLegend />)}
        <SearchSum />
      </div>
      {!s || (!s.value && !comparison.value?.before.value) ? (
        <Empty title="Nothing was recorded here">
          No {kind.value?.label ?? 'value'} in what is chosen. Choose another value above or clear the filters; <code class="mono">sonde run -e EVENT</code>,{' '}
          <code class="mono">--wall</code> and <code class="mono">--heap</code> record more.
        </Empty>
      ) : tab === 'graph' ? <Graph /> : tab === 'table' ? <FunctionTable />
        : tab === 'sandwich' ? <Sandwich /> : <Lines />}
    </div>
  );
}

function useColours(of: Layout | null): (node: number) => number {
  const { colour } = route.value;
  const compare = comparison.value;
  return useMemo(() => {
    if (!of) return () => 0;
    const { tree } = of.sums;
    if (compare && of.sums === compare.after)
      return (node: number) => changeColour(compare.before.total[node], compare.after.total[node]);
    const painter = new Painter(recording.value!, colour);
    return (node: number) => painter.colour(tree.symbol.data[node], tree.inlined.data[node] === 1);
  }, [of, colour, compare]);
}

/** By symbol: does the search find it? Each name is looked at once. */
function useFound(of: Sums | null): ((symbol: number) => boolean) | null {
  const expression = pattern.value;
  return useMemo(() => {
    if (!expression || !of) return null;
    const known = new Map<number, boolean>();
    return (symbol: number) => {
      let hit = known.get(symbol);
      if (hit === undefined) known.set(symbol, (hit = expression.test(of.tree.symbolName(symbol))));
      return hit;
    };
  }, [expression, of]);
}

function SearchSum() {
  const s = sums.value;
  const found = useFound(s);
  const hit = useMemo(() => {
    if (!found || !s) return null;
    let value = 0;
    const inside = new Uint8Array(s.total.length);
    for (let i = 1; i < s.total.length; i++) {
      const parent = s.tree.parent.data[i];
      if (inside[parent]) inside[i] = 1;
      else if (s.total[i] && found(s.tree.symbol.data[i])) {
        inside[i] = 1;
        value += s.total[i];
      }
    }
    return value;
  }, [found, s]);
  if (hit === null || !s) return null;
  return <output class="search-sum">found {percent(hit, s.value)} · {formatValue(hit, kind.value!.unit)}</output>;
}

function ChangeLegend() {
  const colours = palette(dark.value);
  return (
    <div class="legend">
      <Swatch fill={colours.fills[changeColour(1, 0.1)]} text="shrunk" />
      <Swatch fill={colours.fills[changeColour(1, 1)]} text="as before" />
      <Swatch fill={colours.fills[changeColour(0.1, 1)]} text="grown" />
    </div>
  );
}

/** Is a native function shown that was inlined into its caller? Those have a colour of their own. */
function hasInlined(s: Sums): boolean {
  const { tree, total } = s;
  for (let i = 1; i < total.length; i++)
    if (total[i] && tree.inlined.data[i] && kindName(tree.recording, tree.symbol.data[i], true) === 'inlined') return true;
  return false;
}

function CodeLegend() {
  const night = dark.value;
  const r = recording.value!;
  const rows = functionRows.value;
  const s = sums.value;
  const byModule = route.value.colour === 'module';
  const items = useMemo(() => {
    const totals = new Map<string, number>();
    for (const row of rows) {
      const key = byModule ? moduleName(row.symbol) : kindName(r, row.symbol);
      if (key && key !== 'group') totals.set(key, (totals.get(key) ?? 0) + row.self);
    }
    if (!byModule && s && hasInlined(s)) totals.set('inlined', 0);
    return [...totals.entries()].sort((a, b) => b[1] - a[1]).slice(0, 6).map(([key]) => key);
  }, [rows, byModule, s]);
  const fill = (key: string) =>
    byModule ? palette(night).fills[moduleColour(key)] : kindFill(key as (typeof KINDS)[number], night);
  return (
    <div class="legend">
      {items.map((key) => <Swatch key={key} text={key} fill={fill(key)} />)}
    </div>
  );
}

function Graph() {
  const l = layout.value!;
  const s = sums.value!;
  const k = kind.value!;
  const colour = useColours(l);
  const found = useFound(s);
  const [marked, setMarked] = useState(-1);
  const before = comparison.value?.before.total ?? null;
  const tip = (node: number) => describeNode(l, node, k.unit, k.noun, before);
  return (
    <>
      <FlameGraph label={`Flame graph of ${k.label}. Arrow keys move, Enter zooms, Escape zooms out, O opens the function.`}
        layout={l} colour={colour} found={found} upwards={route.value.shape === 'flame'} unit={k.unit}
        zoom={route.value.zoom} setZoom={(zoom, replace) => go({ zoom }, replace)}
        mark={setMarked} open={(node) => openSymbol(s.tree.symbol.data[node])} tip={tip} />
      <Inspector node={marked < s.total.length ? marked : -1} />
    </>
  );
}

export function openSymbol(symbol: number): void {
  const r = recording.value;
  if (r && symbol < r.symbolName.length) go({ view: 'flame', tab: 'sandwich', symbol, zoom: null });
}

/** What the marked box is; without one, what keys do. */
function Inspector(props: { node: number }) {
  const s = sums.value!;
  const k = kind.value!;
  const { tree } = s;
  if (props.node <= 0) {
    return (
      <footer class="inspector faint">
        <span><strong>{formatValue(s.value, k.unit)}</strong> {k.label}{k.noun && s.count ? ` in ${plural(s.count, k.noun.replace(/s$/, ''), k.noun)}` : ''}</span>
        <span class="keys"><kbd>click</kbd> zoom <kbd>Ctrl</kbd>+<kbd>wheel</kbd> or <kbd>W</kbd><kbd>S</kbd> in and out <kbd>drag</kbd> move <kbd>/</kbd> search <kbd>Esc</kbd> whole <kbd>?</kbd> all keys</span>
      </footer>
    );
  }
  const symbol = tree.symbol.data[props.node];
  const r = tree.recording;
  const code = symbol < r.symbolName.length;
  const module = code ? r.moduleOf(symbol) : -1;
  const before = comparison.value?.before;
  return (
    <footer class="inspector">
      <span class="inspector-name" title={tree.name(props.node)}>{tree.name(props.node)}</span>
      <span class="inspector-where">
        {module >= 0 ? r.moduleName[module] : ''} {code && r.placeOf(symbol) ? <Place text={r.placeOf(symbol)} /> : ''}
      </span>
      <span>total <strong>{formatValue(s.total[props.node], k.unit)}</strong> {percent(s.total[props.node], s.value)}</span>
      <span>self <strong>{formatValue(s.self[props.node], k.unit)}</strong> {percent(s.self[props.node], s.value)}</span>
      {before && <span>change <strong>{change(s.total[props.node] - before.total[props.node], k.unit)}</strong></span>}
      <CopyButton text={tree.name(props.node)} />
      {code && <button type="button" onClick={() => openSymbol(symbol)}>Callers and callees</button>}
      {code && <button type="button" onClick={() => go({ tab: 'lines', symbol })}>Lines</button>}
    </footer>
  );
}

function CopyButton(props: { text: string }) {
  return (
    <button type="button" title="Copy the name (C)" onClick={() => void copyText(props.text)}>
      {copied.value === props.text ? 'Copied' : 'Copy name'}
    </button>
  );
}

export function FunctionName(props: { symbol: number; name: string }) {
  const r = recording.value!;
  return (
    <span class="function" title={props.name}>
      <span class="swatch" style={{ background: kindFill(kindName(r, props.symbol), dark.value) }} aria-hidden="true" />
      <span class="function-text">{props.name}</span>
    </span>
  );
}

function moduleName(symbol: number): string {
  const r = recording.value!;
  const module = symbol < r.symbolName.length ? r.moduleOf(symbol) : -1;
  return module < 0 ? '' : r.moduleName[module];
}

export function orDash(v: number, unit: string) {
  return v ? formatValue(v, unit) : <span class="faint">–</span>;
}

function columns(whole: number, unit: string, noun: string, before: Map<number, FunctionRow> | null): Column<FunctionRow>[] {
  const out: Column<FunctionRow>[] = [
    { id: 'self', heading: 'Self', hint: 'Spent in the function itself', number: true, by: (f) => f.self, class: before ? '' : 'roomy-only',
      show: (f) => orDash(f.self, unit) },
    { id: 'self_percent', heading: 'Self %', number: true, by: (f) => f.self, class: 'bar',
      show: (f) => <Share part={f.self} whole={whole}>{percent(f.self, whole)}</Share> },
    { id: 'total', heading: 'Total', hint: 'With everything that it called', number: true, by: (f) => f.total, class: 'roomy-only',
      show: (f) => formatValue(f.total, unit) },
    { id: 'total_percent', heading: 'Total %', number: true, by: (f) => f.total, class: 'bar',
      show: (f) => <Share part={f.total} whole={whole} tone="soft">{percent(f.total, whole)}</Share> },
  ];
  if (before) {
    const was = (f: FunctionRow) => before.get(f.symbol)?.self ?? 0;
    out.splice(1, 3,
      { id: 'before', heading: 'Before', number: true, by: was, show: (f) => orDash(was(f), unit) },
      { id: 'change', heading: 'Change', number: true, by: (f) => f.self - was(f),
        show: (f) => <span class={f.self > was(f) ? 'worse' : f.self < was(f) ? 'better' : ''}>{change(f.self - was(f), unit)}</span> },
      out[2]);
  } else if (noun) {
    out.push({ id: 'samples', heading: capital(noun), number: true, by: (f) => f.selfCount,
      show: (f) => count(f.selfCount), class: 'wide-only' });
  }
  out.push(
    { id: 'name', heading: 'Function', by: (f) => f.name, show: (f) => <FunctionName symbol={f.symbol} name={f.name} />, class: 'fill' },
    { id: 'module', heading: 'Module', by: (f) => moduleName(f.symbol), show: (f) => moduleName(f.symbol), class: 'wide-only module' },
  );
  return out;
}

/** Rows of the table; with a comparison also functions that are gone. */
function useRows(): FunctionRow[] {
  const rows = functionRows.value;
  const before = beforeRows.value;
  const found = useFound(sums.value);
  return useMemo(() => {
    let all = rows;
    if (before) {
      const here = new Set(rows.map((f) => f.symbol));
      all = [...rows, ...[...before.values()].filter((f) => !here.has(f.symbol))
        .map((f) => ({ ...f, self: 0, total: 0, selfCount: 0, totalCount: 0 }))];
    }
    return found ? all.filter((f) => found(f.symbol)) : all;
  }, [rows, before, found]);
}

function FunctionTable() {
  const k = kind.value!;
  const rows = useRows();
  return (
    <Table caption={`Functions by ${k.label}`} rows={rows} keyOf={(f) => f.symbol} sort="self"
      columns={columns(sums.value!.value, k.unit, k.noun, beforeRows.value)}
      open={(f) => openSymbol(f.symbol)} empty="No function has such a name." />
  );
}

function Sandwich() {
  const k = kind.value!;
  const s = sums.value!;
  const rows = useRows();
  const { symbol } = route.value;
  const ranked = useMemo(() => [...rows].sort((a, b) => b.self - a.self), [rows]);
  const at = symbol >= 0 ? symbol : (ranked[0]?.symbol ?? -1);
  const row = functionRows.value.find((f) => f.symbol === at);
  const up = useMemo(() => (at >= 0 ? layOut(callers(s, at)) : null), [s, at]);
  const down = useMemo(() => (at >= 0 ? layOut(callees(s, at)) : null), [s, at]);
  const slim = columns(s.value, k.unit, '', null).filter((c) => ['self_percent', 'total_percent', 'name'].includes(c.id));
  return (
    <div class="sandwich">
      <div class="sandwich-list">
        <Table caption="Functions" rows={rows} keyOf={(f) => f.symbol} sort="self_percent" columns={slim} chosen={at}
          open={(f) => go({ symbol: f.symbol })} empty="No function has such a name." rowsFirst={60} />
      </div>
      <div class="sandwich-graphs">
        {!row || !up || !down ? <Empty title="Choose a function">Its callers and what it calls are drawn here.</Empty> : (
          <>
            <header class="sandwich-head">
              <h2 title={row.name}><FunctionName symbol={row.symbol} name={row.name} /></h2>
              <button type="button" onClick={() => go({ tab: 'lines', symbol: at })}>Lines</button>
              <p>
                self <strong>{formatValue(row.self, k.unit)}</strong> {percent(row.self, s.value)} · total{' '}
                <strong>{formatValue(row.total, k.unit)}</strong> {percent(row.total, s.value)}
                {k.noun ? ` · ${plural(countsItself(k.noun) ? row.selfCount : row.totalCount, k.noun.replace(/s$/, ''), k.noun)}` : ''}
                {recording.value!.placeOf(at) && <> · <Place text={recording.value!.placeOf(at)} /></>}
              </p>
            </header>
            <Half title="Callers" of={up} upwards={true} />
            <Half title="Calls" of={down} upwards={false} />
          </>
        )}
      </div>
    </div>
  );
}

function Half(props: { title: string; of: Layout; upwards: boolean }) {
  const k = kind.value!;
  const [zoom, setZoom] = useState<[number, number] | null>(null);
  const colour = useColours(props.of);
  const found = useFound(props.of.sums);
  const { tree } = props.of.sums;
  return (
    <section class="half" aria-label={props.title} style={{ flexGrow: Math.min(24, props.of.depth + 1) }}>
      <h3>{props.title}</h3>
      <FlameGraph label={`${props.title} of ${tree.name(0)}. Arrow keys move, Enter zooms, O opens the function.`}
        layout={props.of} colour={colour} found={found} upwards={props.upwards} unit={k.unit}
        zoom={zoom} setZoom={(z) => setZoom(z)} open={(node) => openSymbol(tree.symbol.data[node])}
        tip={(node) => describeNode(props.of, node, k.unit, props.upwards && countsItself(k.noun) ? '' : k.noun, null)} />
    </section>
  );
}
