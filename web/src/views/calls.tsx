// Calls: the call graph, and around a function who calls it and what it calls, with counts.

import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { capital, count, percent, plural, value as formatValue } from '../data/format.ts';
import { draw } from '../data/graph.ts';
import { BOX_HEIGHT, BOX_WIDTH, type Box, type Drawing } from '../data/graph_layout.ts';
import { edges as allEdges, type Edge } from '../data/sandwich.ts';
import type { FunctionRow, Sums } from '../data/sums.ts';
import { countsItself } from '../data/values.ts';
import { kindFill, kindName } from '../paint/colours.ts';
import { go, route } from '../route.ts';
import { functionRows, kind, pattern, recording, sums } from '../store.ts';
import { Card, Empty, Share } from '../ui/parts.tsx';
import { Table, type Column } from '../ui/table.tsx';
import { dark } from '../ui/theme.ts';
import { FunctionName } from './flame.tsx';

const BOXES = 32;
const EDGE = 56; // px where the window fades out

export function Calls() {
  const s = sums.value;
  const rows = functionRows.value;
  const { symbol } = route.value;
  const [fold, setFold] = useState(true);
  const centre = rows.some((f) => f.symbol === symbol) ? symbol : -1;
  const drawing = useMemo(() => (s?.value ? draw(s, rows, centre, BOXES, fold) : null), [s, rows, centre, fold]);
  if (!s || !drawing)
    return <div class="view"><Empty title="No calls here">Nothing was recorded of {kind.value?.label ?? 'it'} in what is chosen.</Empty></div>;
  const folded = drawing.boxes.some((b) => b.members.length > 1);
  return (
    <div class="view calls">
      <Card title={centre >= 0 ? 'Calls around' : 'The heaviest functions and their calls'} class="graph-card" aside={
        centre >= 0
          ? <><span class="mono">{s.tree.symbolName(centre)}</span> <button type="button" onClick={() => go({ symbol: -1 })}>Whole graph</button></>
          : <>
            <span class="faint">callers on the left; click a function to centre it</span>{' '}
            {(folded || !fold) && <button type="button" aria-pressed={!fold} title="Functions that only lead from one to the next stand in one box" onClick={() => setFold(!fold)}>
              {fold ? 'Unfold chains' : 'Fold chains'}</button>}
          </>}>
        <Scroller drawing={drawing} about={`${centre} ${fold} ${kind.value!.id}`} centre={centre}>
          <Graph drawing={drawing} sums={s} centre={centre} />
        </Scroller>
      </Card>
      <Edges centre={centre} />
    </div>
  );
}

/** What to look at first: the function in the centre, or where most of the work is done. */
function important(drawing: Drawing, centre: number): Box | undefined {
  return drawing.boxes.find((b) => b.id === centre) ??
    [...drawing.boxes].sort((a, b) => b.row.self - a.row.self)[0];
}

/** A window on the graph: begins at what matters, is dragged, fades out where it goes on. */
function Scroller(props: { drawing: Drawing; about: string; centre: number; children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const held = useRef<{ x: number; y: number; moved: boolean } | null>(null);
  const [more, setMore] = useState('');
  const look = () => {
    const e = box.current!;
    const sides = [e.scrollLeft > 1 ? 'left' : '', e.scrollLeft + e.clientWidth < e.scrollWidth - 1 ? 'right' : ''];
    setMore(sides.filter(Boolean).join(' '));
  };
  useLayoutEffect(() => {
    const e = box.current!;
    const it = important(props.drawing, props.centre);
    const part = props.centre >= 0 ? 0.5 : 0.8; // what leads there matters more than what comes after
    const whole = it && Math.max(it.x + BOX_WIDTH / 2 - e.clientWidth * part, it.x + BOX_WIDTH + EDGE - e.clientWidth);
    if (it) e.scrollTo(Math.min(whole!, it.x), it.y + BOX_HEIGHT / 2 - e.clientHeight / 2);
    look();
  }, [props.about]);
  useEffect(look, [props.drawing]);
  useEffect(() => {
    const watch = new ResizeObserver(look);
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  const move = (e: PointerEvent) => {
    const from = held.current;
    if (!from || e.pointerType === 'touch') return;
    if (!from.moved && Math.abs(e.clientX - from.x) + Math.abs(e.clientY - from.y) < 5) return;
    box.current!.scrollBy(from.x - e.clientX, from.y - e.clientY);
    held.current = { x: e.clientX, y: e.clientY, moved: true };
  };
  // What was dragged is not clicked too.
  const click = (e: MouseEvent) => {
    if (held.current?.moved) e.stopPropagation();
    held.current = null;
  };
  return (
    <div class="graph-scroll" ref={box} tabIndex={0} role="region" aria-label="Call graph" data-more={more} onScroll={look}
      onPointerDown={(e) => (held.current = { x: e.clientX, y: e.clientY, moved: false })} onPointerMove={move}
      onPointerLeave={() => (held.current = null)} onClickCapture={click}>
      {props.children}
    </div>
  );
}

function Graph(props: { drawing: Drawing; sums: Sums; centre: number }) {
  const { drawing, sums: s, centre } = props;
  const name = new Map(drawing.boxes.map((b) => [b.id, b.members[0].name]));
  return (
    <svg width={drawing.width} height={drawing.height} role="img" aria-label={`Call graph of ${drawing.boxes.length} functions`}>
      <g>
        {drawing.arrows.map((a) => {
          const near = centre < 0 || a.from === centre || a.to === centre;
          return (
            <path key={`${a.from}>${a.to}`} d={a.path} class={`arrow ${a.back ? 'back' : ''} ${near && !(a.aside && centre < 0) ? '' : 'far'}`}
              style={{ strokeWidth: a.back || a.aside ? '1px' : `${(1 + 6 * Math.min(1, a.value / s.value)).toFixed(1)}px` }}>
              <title>{`${name.get(a.from)} → ${name.get(a.to)}: ${formatValue(a.value, kind.value!.unit)}${times(often(a))}`}</title>
            </path>
          );
        })}
      </g>
      {drawing.boxes.map((b) => <FunctionBox key={b.id} box={b} whole={s.value} centre={b.id === centre} />)}
    </svg>
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

function shorten(name: string, letters: number): string {
  return name.length > letters ? `${name.slice(0, letters - 1)}…` : name;
}

/** How a box looks to a search: found, dim, or neither. */
function searched(box: Box): string {
  if (!pattern.value) return '';
  return box.members.some((f) => pattern.value!.test(f.name)) ? 'found' : 'dim';
}

/** What stands in a box below the name. */
function figures(box: Box, whole: number): string {
  const more = box.members.length - 1;
  const parts = [percent(box.row.total, whole)];
  if (more) parts.push(`and ${plural(more, 'call', 'calls')} on`);
  else if (box.row.self) parts.push(`self ${percent(box.row.self, whole)}`);
  if (!more && countsItself(kind.value!.noun)) parts.push(`${count(oftenIn(box.row))}×`);
  return parts.join(' · ');
}

function describe(box: Box): string {
  const { unit } = kind.value!;
  const names = box.members.map((f) => f.name).join(' →\n');
  const amount = `total ${formatValue(box.row.total, unit)}, self ${formatValue(box.row.self, unit)}${times(oftenIn(box.row))}`;
  return `${names}\n${amount}${box.hidden ? `\n${plural(box.hidden, 'smaller call is', 'smaller calls are')} not drawn` : ''}`;
}

function FunctionBox(props: { box: Box; whole: number; centre: boolean }) {
  const { box } = props;
  const share = Math.min(1, box.row.total / props.whole);
  const own = Math.min(1, box.row.self / props.whole);
  const room = BOX_WIDTH - 28;
  return (
    <g class={`box ${props.centre ? 'centre' : ''} ${searched(box)}`} transform={`translate(${box.x},${box.y})`}
      onClick={() => go({ symbol: box.row.symbol })}>
      <title>{describe(box)}</title>
      {box.members.length > 1 && <rect class="box-back" x={5} y={5} width={BOX_WIDTH} height={BOX_HEIGHT} rx={7} />}
      <rect class="box-back" width={BOX_WIDTH} height={BOX_HEIGHT} rx={7} />
      <rect class="box-work" width={BOX_WIDTH} height={BOX_HEIGHT} rx={7} style={{ opacity: Math.min(1, own * 4).toFixed(2) }} />
      <rect width={4} height={BOX_HEIGHT - 12} x={6} y={6} rx={2} style={{ fill: kindFill(kindName(recording.value!, box.row.symbol), dark.value) }} />
      <text x={18} y={18} class="box-name">{shorten(box.row.name, 25)}</text>
      <text x={18} y={34} class="box-number">{figures(box, props.whole)}</text>
      <rect class="box-share" x={18} y={BOX_HEIGHT - 6} width={room * share} height={2.5} rx={1} />
      <rect class="box-own" x={18} y={BOX_HEIGHT - 6} width={room * own} height={2.5} rx={1} />
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
    { id: 'value', heading: k.label, number: true, by: (e) => e.value, class: 'roomy-only', show: (e) => formatValue(e.value, k.unit) },
    { id: 'share', heading: 'Share', number: true, by: (e) => e.value, class: 'bar', show: (e) => <Share part={e.value} whole={s.value}>{percent(e.value, s.value)}</Share> },
    ...(k.noun ? [{ id: 'count', heading: capital(k.noun), number: true, by: often, class: 'roomy-only', show: (e: Edge) => count(often(e)) }] : []),
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
