// Timeline: a track for each process and thread; states above, then spans of a trace, then the
// samples as a flame chart.

import { useMemo, useState } from 'preact/hooks';
import { duration as formatDuration, plural } from '../data/format.ts';
import { family } from '../data/family.ts';
import type { Recording } from '../data/recording.ts';
import { chart, intervals, type ChartLevel, type Intervals } from '../data/tracks.ts';
import { waitLabel } from '../data/values.ts';
import { Painter, palette } from '../paint/colours.ts';
import { BOX, CURVE_ALPHA, ROOM, STRIP, type Meaning, type TimelineScene, type Track } from '../paint/timeline_canvas.ts';
import { go, route } from '../route.ts';
import { choice, duration, held, pattern, recording, source, threadMask, version } from '../store.ts';
import { Empty, Swatch } from '../ui/parts.tsx';
import { dark } from '../ui/theme.ts';
import { Tracks } from './tracks.tsx';

const OPEN_AT_FIRST = 4;
const DEEPEST = 32;
const PROCESS = 34;

const STATES: Record<string, [string, string]> = {
  cpu: ['#3f9b5f', '#4fae72'],
  'off-cpu:lock': ['#d1495b', '#e0717f'],
  'off-cpu:io': ['#d98f2b', '#dba04f'],
  'off-cpu:queue': ['#8f6fd1', '#a78be0'],
  'off-cpu:gil': ['#b8479b', '#cf6fb6'],
  'off-cpu:sleep': ['#c3c9d2', '#4a525f'],
  'off-cpu:child': ['#7fa3b8', '#5b7f95'],
  'off-cpu:other': ['#9aa3b0', '#6b7481'],
};

function stateColour(name: string, night: boolean): string {
  return (STATES[name] ?? STATES[name.startsWith('off-cpu') ? 'off-cpu:other' : 'cpu'])[night ? 1 : 0];
}

export function stateName(event: string): string {
  return event.startsWith('off-cpu') ? waitLabel(event) : event === 'cpu' ? 'Running' : event;
}

/** What a thread's track is made of. */
interface Parts {
  lists: Map<number, Intervals>;
  depths: Map<number, number>; // rows of spans
  open: Set<number>;
  charts: (thread: number) => ChartLevel[];
}

/** Tracks from top to bottom; charts are made when a thread is unfolded. */
function makeTracks(r: Recording, parts: Parts, mask: Uint8Array | null): Track[] {
  const out: Track[] = [];
  let top = 0;
  const put = (t: Omit<Track, 'top'>) => {
    out.push({ ...t, top });
    top += t.height;
  };
  for (const row of family(r, choice.peek()!)) {
    const p = r.head.processes[row.process];
    const threads = row.threads.filter((t) => !mask || mask[t]);
    if (!threads.length && mask) continue;
    const curves = ['rss', 'heap'].flatMap((name) => r.curves.filter((c) => c.process === row.process && c.thread < 0 && c.name === name));
    const life = { from: p.start, to: p.end ?? r.head.meta.duration };
    put({ process: row.process, thread: -1, height: PROCESS, curves, intervals: null, depth: 0, levels: null, ...life });
    for (const thread of threads) {
      const list = parts.lists.get(thread) ?? null;
      const open = parts.open.has(thread);
      const levels = open && list ? parts.charts(thread) : null;
      const depth = open ? Math.min(DEEPEST, parts.depths.get(thread) ?? 0) : 0;
      const height = STRIP + ROOM + (levels ? levels.length * BOX + 6 : 0) + (depth ? depth * BOX + ROOM + (levels ? 0 : 2) : 0);
      put({ process: row.process, thread, height, curves: [], intervals: list, depth, levels, ...life });
    }
  }
  return out;
}

/** Boxes are named by the symbols of the recording. */
function meaning(painter: Painter, expression: RegExp | null, symbol: (id: number) => number,
  name: (id: number) => string, inlined: (id: number) => boolean): Meaning {
  const known = new Map<number, boolean>();
  return {
    name,
    colour: (id) => painter.colour(symbol(id), inlined(id)),
    found: expression ? (id) => {
      let hit = known.get(id);
      if (hit === undefined) known.set(id, (hit = expression.test(name(id))));
      return hit;
    } : null,
  };
}

function useScene(tracks: Track[]): TimelineScene {
  const r = recording.value!;
  const { tree } = held.value!;
  const night = dark.value;
  const expression = pattern.value;
  const { colour } = route.value;
  const painter = useMemo(() => new Painter(r, colour), [r, colour, r.renamed, r.symbolName.length]);
  return useMemo<TimelineScene>(() => {
    const css = getComputedStyle(document.documentElement);
    const ink = (name: string) => css.getPropertyValue(name).trim();
    return {
      tracks,
      extent: Math.max(duration.value, 1),
      palette: palette(night),
      state: (event) => stateColour(r.head.events[event].name, night),
      calls: meaning(painter, expression, (node) => tree.symbol.data[node], (node) => tree.name(node), (node) => tree.inlined.data[node] === 1),
      named: meaning(painter, expression, (id) => id - 1, (id) => (id ? r.symbolText(id - 1) : '?'), () => false),
      marks: r.head.marks ?? [],
      ink: { line: ink('--line'), soft: ink('--text-soft'), text: ink('--text'), accent: ink('--accent'), ground: ink('--surface'), onAccent: ink('--on-accent') },
    };
  }, [tracks, painter, night, expression]);
}

export function Timeline() {
  version.value;
  const r = recording.value!;
  const { tree } = held.value!;
  const night = dark.value;
  const mask = threadMask.value;
  const lists = useMemo(() => intervals(r), [r, version.value]);
  const spanned = r.head.spans?.threads ?? [];
  const first = useMemo(() => {
    const shown = (id: number) => !mask || mask[id];
    const busiest = [...lists.entries()].sort((a, b) => b[1].length - a[1].length).map(([id]) => id).filter(shown);
    return new Set([...busiest.slice(0, OPEN_AT_FIRST), ...spanned.filter(shown).slice(0, OPEN_AT_FIRST)]);
  }, [r, spanned.length > 0, lists.size > 0, route.value.processes.join(), route.value.threads.join()]);
  const [chosen, setOpen] = useState<Set<number> | null>(null);
  const open = chosen ?? first;
  const [depths, setDepths] = useState(new Map<number, number>());
  const made = useMemo(() => new Map<number, ChartLevel[]>(), [lists]);
  const charts = (thread: number) => {
    let levels = made.get(thread);
    if (!levels) {
      const longest = Math.max(0, ...r.head.events.map((e) => (e.unit === 'ns' ? e.period : 0)));
      made.set(thread, (levels = chart(tree, lists.get(thread)!, 2 * (r.width + longest)).slice(0, DEEPEST)));
    }
    return levels;
  };
  const tracks = useMemo(() => makeTracks(r, { lists, depths, open, charts }, mask), [r, lists, open, mask, depths]);
  const scene = useScene(tracks);
  const states = useMemo(() => {
    const used = new Set<number>();
    for (const list of lists.values()) for (const e of list.event) used.add(e);
    return [...used].map((e) => r.head.events[e].name);
  }, [lists]);
  const curved = useMemo(() => (['rss', 'heap'] as const).filter((name) => r.curves.some((c) => c.name === name && c.thread < 0))
    .map((name) => (name === 'rss' ? 'Resident memory' : 'Heap')), [version.value]);
  if (!r.head.processes.length) return <div class="view"><Empty title="Nothing ran">The recording holds no processes.</Empty></div>;
  const all = () => new Set([...lists.keys(), ...spanned]);
  return (
    <div class="view timeline-view">
      <div class="toolbar">
        <button type="button" onClick={() => setOpen(all())}>Unfold all</button>
        <button type="button" onClick={() => setOpen(new Set())}>Fold all</button>
        <button type="button" disabled={!route.value.zoom} title="Narrows every view to the time that is shown"
          onClick={() => go({ range: route.value.zoom!.map((z) => z * scene.extent) as [number, number] })}>Choose this time</button>
        <span class="keys faint"><kbd>W</kbd><kbd>S</kbd> or <kbd>Ctrl</kbd>+<kbd>wheel</kbd> zoom <kbd>A</kbd><kbd>D</kbd> move <kbd>arrows</kbd> from box to box <kbd>drag</kbd> the ruler to choose a time</span>
      </div>
      {(states.length > 0 || curved.length > 0) && (
        <div class="legend">
          {states.map((name) => <Swatch key={name} fill={stateColour(name, night)} text={stateName(name)} />)}
          {curved.map((name, i) => <Swatch key={name} fill={`color-mix(in srgb, var(--accent) ${i ? 100 * (1 - (1 - CURVE_ALPHA[0]) * (1 - CURVE_ALPHA[1])) : 100 * CURVE_ALPHA[0]}%, transparent)`} text={name} />)}
        </div>
      )}
      <SpanNote />
      {!lists.size && !spanned.length && <p class="notice">No state of a thread was recorded, only {r.times.length ? 'events' : 'sums'}: tracks show when processes lived. <code class="mono">-e cpu</code> and <code class="mono">--wall</code> record what threads did.</p>}
      <Tracks scene={scene} open={open} foldable={(thread) => lists.has(thread) || spanned.includes(thread)} setDepths={setDepths}
        flip={(thread) => {
          const next = new Set(open);
          if (!next.delete(thread)) next.add(thread);
          setOpen(next);
        }} />
    </div>
  );
}

function SpanNote() {
  const { spans, meta } = recording.value!.head;
  if (!spans || meta.live || !spans.least || source.spans) return null;
  return (
    <p class="faint note-line">
      {plural(spans.total, 'span')}; those shorter than {formatDuration(spans.least)} stand together in this file; on the page of <span class="mono">sonde run --live</span> each can be seen.
    </p>
  );
}
