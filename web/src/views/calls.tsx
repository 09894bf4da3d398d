// Calls: the call graph, and around a function who calls it and what it calls, with counts.

import { useMemo } from 'preact/hooks';
import { capital, count, percent, plural, value as formatValue } from '../data/format.ts';
import { BOX_HEIGHT, BOX_WIDTH, draw, type Box } from '../data/graph.ts';
import { edges as allEdges, type Edge } from '../data/sandwich.ts';
import type { FunctionRow } from '../data/sums.ts';
import { countsItself } from '../data/values.ts';
import { kindFill, kindName } from '../paint/colours.ts';
import { go, route } from '../route.ts';
import { functionRows, kind, pattern, recording, sums } from '../store.ts';
import { Card, Empty, Share } from '../ui/parts.tsx';
import { Table, type Column } from '../ui/table.tsx';
import { dark } from '../ui/theme.ts';
import { FunctionName } from './flame.tsx';

const BOXES = 32;

export function Calls() {
  const s = sums.value;
  const rows = functionRows.value;
  const { symbol } = route.value;
  const centre = rows.some((f) => f.symbol === symbol) ? symbol : -1;
  const drawing = useMemo(() => (s ? draw(s, rows, centre, BOXES) : null), [s, rows, centre]);
  if (!s?.value || !drawing)
    return <div class="view"><Empty title="No calls here">Nothing was recorded of {kind.value?.label ?? 'it'} in what is chosen.</Empty></div>;
  const name = centre >= 0 ? s.tree.symbolName(centre) : '';
  return (
    <div class="view calls">
      <Card title={centre >= 0 ? 'Calls around' : 'The heaviest functions and their calls'} class="graph-card" aside={
        centre >= 0
          ? <><span class="mono">{name}</span> <button type="button" onClick={() => go({ symbol: -1 })}>Whole graph</button></>
          : <span class="faint">from callers on the left to callees; click a function to centre it</span>}>
        <div class="graph-scroll" tabIndex={0} role="region" aria-label="Call graph">
          <svg width={drawing.width} height={drawing.height} role="img" aria-label={`Call graph of ${drawing.boxes.length} functions`}>
            <g>
              {drawing.arrows.map((a) => {
                const near = centre < 0 || a.from === centre || a.to === centre;
                return (
                  <path key={`${a.from}>${a.to}`} d={a.path} class={`arrow ${a.back ? 'back' : ''} ${near ? '' : 'far'}`}
                    style={{ strokeWidth: a.back ? '1px' : `${(1 + 6 * (a.value / s.value)).toFixed(1)}px` }}>
                    <title>{`${s.tree.symbolName(a.from)} → ${s.tree.symbolName(a.to)}: ${formatValue(a.value, kind.value!.unit)}${times(often(a))}`}</title>
                  </path>
                );
              })}
            </g>
            {drawing.boxes.map((b) => <FunctionBox key={b.symbol} box={b} whole={s.value} centre={b.symbol === centre} />)}
          </svg>
        </div>
      </Card>
      <Edges centre={centre} />
    </div>
  );
}

function often(e: Edge): number {
  return countsItself(kind.value!.noun) ? e.calls : e.count;
}

function oftenIn(row: FunctionRow): number {
  return countsItself(kind.value!.noun) ? row.selfCount : row.totalCount;
}

/** How often, in the words of the value. */
function times(n: number): string {
  const { noun } = kind.value!;
  return noun && n ? `, ${plural(n, noun.replace(/s$/, ''), noun)}` : '';
}

function FunctionBox(props: { box: Box; whole: number; centre: boolean }) {
  const { box } = props;
  const r = recording.value!;
  const k = kind.value!;
  const found = pattern.value ? pattern.value.test(box.row.name) : null;
  const open = () => go({ symbol: box.symbol });
  const share = Math.min(1, box.row.total / props.whole);
  const own = Math.min(1, box.row.self / props.whole);
  const letters = 27;
  const name = box.row.name.length > letters ? `${box.row.name.slice(0, letters - 1)}…` : box.row.name;
  return (
    <g class={`box ${props.centre ? 'centre' : ''} ${found === false ? 'dim' : ''} ${found ? 'found' : ''}`} transform={`translate(${box.x},${box.y})`}
      onClick={open}>
      <title>{`${box.row.name}\ntotal ${formatValue(box.row.total, k.unit)}, self ${formatValue(box.row.self, k.unit)}${times(oftenIn(box.row))}${box.hidden ? `\n${box.hidden} smaller calls are not drawn` : ''}`}</title>
      <rect class="box-back" width={BOX_WIDTH} height={BOX_HEIGHT} rx={7} />
      <rect width={4} height={BOX_HEIGHT - 12} x={6} y={6} rx={2} style={{ fill: kindFill(kindName(r, box.symbol), dark.value) }} />
      <text x={18} y={18} class="box-name">{name}</text>
      <text x={18} y={34} class="box-number">{`${percent(box.row.total, props.whole)}${box.row.self ? ` · self ${percent(box.row.self, props.whole)}` : ''}${countsItself(k.noun) ? ` · ${count(oftenIn(box.row))}×` : ''}`}</text>
      <rect class="box-share" x={18} y={BOX_HEIGHT - 6} width={(BOX_WIDTH - 28) * share} height={2.5} rx={1} />
      <rect class="box-own" x={18} y={BOX_HEIGHT - 6} width={(BOX_WIDTH - 28) * own} height={2.5} rx={1} />
    </g>
  );
}

function Edges(props: { centre: number }) {
  const s = sums.value!;
  const k = kind.value!;
  const expression = pattern.value;
  const all = useMemo(() => allEdges(s), [s]);
  const rows = all.filter((e) => (props.centre < 0 || e.from === props.centre || e.to === props.centre) &&
    (!expression || expression.test(s.tree.symbolName(e.from)) || expression.test(s.tree.symbolName(e.to))));
  const name = (symbol: number) => (
    <button type="button" class="link" onClick={() => go({ symbol })}><FunctionName symbol={symbol} name={s.tree.symbolName(symbol)} /></button>
  );
  const columns: Column<Edge>[] = [
    { id: 'value', heading: k.label, number: true, by: (e) => e.value, show: (e) => formatValue(e.value, k.unit) },
    { id: 'share', heading: 'Share', number: true, by: (e) => e.value, class: 'bar', show: (e) => <Share part={e.value} whole={s.value}>{percent(e.value, s.value)}</Share> },
    ...(k.noun ? [{ id: 'count', heading: capital(k.noun), number: true, by: often, show: (e: Edge) => count(often(e)) }] : []),
    { id: 'from', heading: 'Caller', by: (e) => s.tree.symbolName(e.from), class: 'half-fill', show: (e) => name(e.from) },
    { id: 'to', heading: 'Callee', by: (e) => s.tree.symbolName(e.to), class: 'half-fill', show: (e) => name(e.to) },
  ];
  return (
    <Card title="Calls" class="edges-card">
      <Table caption="Calls from function to function" rows={rows} keyOf={(e) => `${e.from}>${e.to}`} sort="value" columns={columns} rowsFirst={50}
        empty="No calls between functions here." />
    </Card>
  );
}
