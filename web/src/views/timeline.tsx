// Timeline: a track for each process and thread; states above, the samples as a flame chart below.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { bytes, duration as formatDuration, moment } from '../data/format.ts';
import { family } from '../data/family.ts';
import type { Recording } from '../data/recording.ts';
import { chart, intervals, type ChartLevel, type Intervals } from '../data/tracks.ts';
import { waitLabel } from '../data/values.ts';
import { Painter, palette } from '../paint/colours.ts';
import { BOX, RULER, STRIP, TimelineCanvas, type Hit, type TimelineScene, type Track } from '../paint/timeline_canvas.ts';
import { go, route } from '../route.ts';
import { choice, duration, held, pattern, recording, threadMask, version } from '../store.ts';
import { Empty } from '../ui/parts.tsx';
import { dark } from '../ui/theme.ts';

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
  'off-cpu:other': ['#9aa3b0', '#6b7481'],
};

function stateColour(name: string, night: boolean): string {
  return (STATES[name] ?? STATES[name.startsWith('off-cpu') ? 'off-cpu:other' : 'cpu'])[night ? 1 : 0];
}

function stateName(event: string): string {
  return event.startsWith('off-cpu') ? waitLabel(event) : event === 'cpu' ? 'Running' : event;
}

/** Tracks from top to bottom; charts are made when a thread is unfolded. */
function makeTracks(r: Recording, lists: Map<number, Intervals>, open: Set<number>, mask: Uint8Array | null,
  charts: (thread: number) => ChartLevel[]): Track[] {
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
    put({ process: row.process, thread: -1, height: PROCESS, curves, intervals: null, levels: null, ...life });
    for (const thread of threads) {
      const list = lists.get(thread) ?? null;
      const levels = open.has(thread) && list ? charts(thread) : null;
      const height = STRIP + 4 + (levels ? levels.length * BOX + 6 : 0);
      put({ process: row.process, thread, height, curves: [], intervals: list, levels, ...life });
    }
  }
  return out;
}

export function Timeline() {
  version.value;
  const r = recording.value!;
  const tree = held.value!.tree;
  const night = dark.value;
  const mask = threadMask.value;
  const lists = useMemo(() => intervals(r), [r, version.value]);
  const first = useMemo(() => {
    const busiest = [...lists.entries()].sort((a, b) => b[1].length - a[1].length).map(([id]) => id);
    return new Set(busiest.slice(0, OPEN_AT_FIRST));
  }, [r]);
  const [open, setOpen] = useState(first);
  const made = useMemo(() => new Map<number, ChartLevel[]>(), [lists]);
  const charts = (thread: number) => {
    let levels = made.get(thread);
    if (!levels) {
      const longest = Math.max(0, ...r.head.events.map((e) => (e.unit === 'ns' ? e.period : 0)));
      made.set(thread, (levels = chart(tree, lists.get(thread)!, 2 * (r.width + longest)).slice(0, DEEPEST)));
    }
    return levels;
  };
  const tracks = useMemo(() => makeTracks(r, lists, open, mask, charts), [r, lists, open, mask]);
  const painter = useMemo(() => new Painter(r, route.value.colour), [r, route.value.colour]);
  const expression = pattern.value;
  const scene = useMemo<TimelineScene>(() => {
    const css = getComputedStyle(document.documentElement);
    const ink = (name: string) => css.getPropertyValue(name).trim();
    return {
      tracks,
      extent: Math.max(duration.value, 1),
      palette: palette(night),
      state: (event) => stateColour(r.head.events[event].name, night),
      name: (node) => tree.name(node),
      colour: (node) => painter.colour(tree.symbol.data[node], tree.inlined.data[node] === 1),
      found: expression ? (node) => expression.test(tree.name(node)) : null,
      ink: { line: ink('--line'), soft: ink('--text-soft'), text: ink('--text'), accent: ink('--accent'), ground: ink('--surface') },
    };
  }, [tracks, painter, night, expression]);
  const states = useMemo(() => {
    const used = new Set<number>();
    for (const list of lists.values()) for (const e of list.event) used.add(e);
    return [...used].map((e) => r.head.events[e].name);
  }, [lists]);
  if (!r.head.processes.length) return <div class="view"><Empty title="Nothing ran">The recording holds no processes.</Empty></div>;
  return (
    <div class="view timeline-view">
      <div class="toolbar">
        <div class="legend">
          {states.map((name) => (
            <span key={name} class="legend-item">
              <span class="swatch" style={{ background: stateColour(name, night) }} aria-hidden="true" />
              {stateName(name)}
            </span>
          ))}
        </div>
        <button type="button" onClick={() => setOpen(new Set(lists.keys()))}>Unfold all</button>
        <button type="button" onClick={() => setOpen(new Set())}>Fold all</button>
        <span class="keys faint"><kbd>W</kbd><kbd>S</kbd> zoom <kbd>A</kbd><kbd>D</kbd> move <kbd>drag</kbd> the ruler to choose a time</span>
      </div>
      {!lists.size && <p class="notice">This recording has no times of samples: tracks show only when processes lived.</p>}
      <Tracks scene={scene} open={open} flip={(thread) => {
        const next = new Set(open);
        if (!next.delete(thread)) next.add(thread);
        setOpen(next);
      }} />
    </div>
  );
}

class Handling {
  view: TimelineCanvas;
  onHit: (hit: Hit | null, x: number, y: number) => void = () => {};
  onScroll: (by: number) => void = () => {};
  private drag: { x: number; y: number; from: number; to: number; ruler: boolean; moved: boolean } | null = null;

  constructor(canvas: HTMLCanvasElement) {
    this.view = new TimelineCanvas(canvas);
    canvas.addEventListener('pointerdown', (e) => {
      if (e.button !== 0) return;
      this.drag = { x: e.offsetX, y: e.offsetY, from: this.view.from, to: this.view.to, ruler: e.offsetY < RULER, moved: false };
      canvas.setPointerCapture(e.pointerId);
    });
    canvas.addEventListener('pointermove', (e) => this.move(e));
    canvas.addEventListener('pointerup', (e) => this.release(e));
    canvas.addEventListener('pointerleave', () => this.onHit(null, 0, 0));
    canvas.addEventListener('wheel', (e) => this.wheel(e), { passive: false });
    canvas.addEventListener('keydown', (e) => this.key(e));
  }

  private move(e: PointerEvent): void {
    const { view, drag } = this;
    if (!drag) {
      this.onHit(view.at(e.offsetX, e.offsetY), e.offsetX, e.offsetY);
      return;
    }
    if (Math.abs(e.offsetX - drag.x) > 3) drag.moved = true;
    if (drag.ruler && drag.moved) {
      const [a, b] = [view.time(drag.x), view.time(e.offsetX)];
      view.range = [Math.max(0, Math.min(a, b)), Math.max(a, b)];
      view.invalidate();
    } else if (drag.moved) {
      const shift = ((drag.x - e.offsetX) / view.width) * (drag.to - drag.from);
      view.show(drag.from + shift, drag.to + shift);
    }
  }

  private release(e: PointerEvent): void {
    const { view, drag } = this;
    this.drag = null;
    if (!drag) return;
    if (drag.ruler) {
      if (drag.moved && view.range) go({ range: view.range });
      else go({ range: null });
      return;
    }
    if (drag.moved) {
      this.keep();
      return;
    }
    const hit = view.at(e.offsetX, e.offsetY);
    const level = hit && hit.depth >= 0 ? hit.track.levels![hit.depth] : null;
    if (!level) return;
    const [from, to] = [level.start[hit!.box], level.end[hit!.box]];
    const room = (to - from) * 0.05;
    view.show(from - room, to + room);
    this.keep(false);
  }

  private wheel(e: WheelEvent): void {
    const { view } = this;
    const scale = e.deltaMode === 1 ? 20 : 1;
    if (e.ctrlKey || e.metaKey) this.zoom(e.offsetX / view.width, Math.exp((e.deltaY * scale) / 300));
    else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
      const shift = (((e.deltaX || e.deltaY) * scale) / view.width) * (view.to - view.from);
      view.show(view.from + shift, view.to + shift);
      this.keep();
    } else return; // the list scrolls
    e.preventDefault();
  }

  zoom(at: number, by: number): void {
    const { view } = this;
    const span = (view.to - view.from) * by;
    const centre = view.from + at * (view.to - view.from);
    view.show(centre - at * span, centre - at * span + span);
    this.keep();
  }

  keep(replace = true): void {
    const extent = this.view.scene?.extent ?? 1;
    const { from, to } = this.view;
    go({ zoom: to - from > extent * 0.999999 ? null : [from / extent, to / extent] }, replace);
  }

  private key(e: KeyboardEvent): void {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const { view } = this;
    const span = view.to - view.from;
    const pan = (by: number) => (view.show(view.from + by * span, view.to + by * span), this.keep());
    const keys: Record<string, () => void> = {
      w: () => this.zoom(0.5, 1 / 1.3),
      s: () => this.zoom(0.5, 1.3),
      a: () => pan(-0.15),
      d: () => pan(0.15),
      ArrowLeft: () => pan(-0.15),
      ArrowRight: () => pan(0.15),
      ArrowUp: () => this.onScroll(-60),
      ArrowDown: () => this.onScroll(60),
      '+': () => this.zoom(0.5, 1 / 1.3),
      '-': () => this.zoom(0.5, 1.3),
      Escape: () => go({ zoom: null, range: null }),
    };
    const act = keys[e.key];
    if (!act) return;
    act();
    e.preventDefault();
  }
}

function Tracks(props: { scene: TimelineScene; open: Set<number>; flip: (thread: number) => void }) {
  const { scene } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const handling = useRef<Handling | null>(null);
  const [tip, setTip] = useState<{ hit: Hit; x: number; y: number } | null>(null);
  const [top, setTop] = useState(0);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const last = scene.tracks[scene.tracks.length - 1];
  const height = last ? last.top + last.height : 0;

  useEffect(() => {
    const h = new Handling(canvas.current!);
    handling.current = h;
    (canvas.current as HTMLCanvasElement & { timeline?: TimelineCanvas }).timeline = h.view;
    h.onHit = (hit, x, y) => setTip(hit ? { hit, x, y } : null);
    h.onScroll = (by) => scroller.current!.scrollBy(0, by);
    const fit = () => {
      const box = canvas.current!.parentElement!;
      setSize({ width: box.clientWidth, height: scroller.current!.clientHeight });
      h.view.resize(box.clientWidth, scroller.current!.clientHeight);
    };
    const watch = new ResizeObserver(fit);
    watch.observe(scroller.current!);
    fit();
    return () => watch.disconnect();
  }, []);

  const { zoom, range } = route.value;
  useEffect(() => {
    const { view } = handling.current!;
    view.scene = scene;
    view.range = range;
    view.show(...((zoom ? zoom.map((z) => z * scene.extent) : [0, scene.extent]) as [number, number]));
  }, [scene, zoom?.[0], zoom?.[1], range?.[0], range?.[1]]);

  const onScroll = () => {
    const { view } = handling.current!;
    view.scroll = scroller.current!.scrollTop;
    setTop(view.scroll);
    view.invalidate();
  };
  const visible = scene.tracks.filter((t) => t.top + t.height > top - 200 && t.top < top + size.height + 200);
  return (
    <div class="tracks" ref={scroller} onScroll={onScroll} tabIndex={0} role="region" aria-label="Tracks">
      <div class="tracks-inner" style={{ height: `${height + RULER}px` }}>
        <div class="track-labels" style={{ paddingTop: `${RULER}px` }}>
          {visible.map((t) => <Label key={`${t.process}.${t.thread}`} track={t} open={props.open.has(t.thread)} flip={props.flip} />)}
        </div>
        <div class="track-canvas" style={{ height: `${size.height}px` }}>
          <canvas ref={canvas} tabIndex={0} role="application" aria-roledescription="timeline"
            aria-label="What each thread did over time. W and S zoom, A and D move, Escape shows all." />
          {tip && <Tip {...tip} scene={scene} width={size.width} />}
        </div>
      </div>
    </div>
  );
}

function Label(props: { track: Track; open: boolean; flip: (thread: number) => void }) {
  const r = recording.value!;
  const { track } = props;
  const style = { top: `${track.top + RULER}px`, height: `${track.height}px` };
  if (track.thread < 0) {
    const p = r.head.processes[track.process];
    const rss = track.curves.reduce((most, c) => Math.max(most, ...c.values), 0);
    return (
      <div class="track-label process-label" style={style} title={p.arguments || p.name}>
        <span class="process-name">{p.name || '?'}</span> <span class="pid">{p.pid}</span>
        {rss > 0 && <span class="track-note">{bytes(rss)}</span>}
      </div>
    );
  }
  const t = r.head.threads[track.thread];
  return (
    <div class="track-label" style={style}>
      {track.intervals ? (
        <button type="button" class="fold-name" aria-expanded={props.open} onClick={() => props.flip(track.thread)}>
          <span aria-hidden="true">{props.open ? '▾' : '▸'}</span> {t.name || 'thread'} <span class="pid">{t.tid}</span>
        </button>
      ) : (
        <span class="fold-name faint">{t.name || 'thread'} <span class="pid">{t.tid}</span></span>
      )}
    </div>
  );
}

function Tip(props: { hit: Hit; x: number; y: number; scene: TimelineScene; width: number }) {
  const r = recording.value!;
  const { hit } = props;
  const level = hit.depth >= 0 ? hit.track.levels?.[hit.depth] : undefined;
  const list = hit.track.intervals;
  const lines: string[] = [moment(hit.time, 1000)];
  if (level && hit.box < level.end.length) {
    lines.push(props.scene.name(level.node[hit.box]), `for ${formatDuration(level.end[hit.box] - level.start[hit.box])}`);
  } else if (list && hit.interval >= 0) {
    const event = r.head.events[list.event[hit.interval]].name;
    const stack = list.stack[hit.interval] >>> 1;
    const tree = held.value!.tree;
    lines.push(stateName(event), `for ${formatDuration(list.end[hit.interval] - list.start[hit.interval])}`);
    if (stack) lines.push(`in ${tree.name(tree.nodeOf(stack))}`);
  } else if (hit.track.thread < 0) {
    for (const c of hit.track.curves) {
      let i = c.times.findIndex((t) => t > hit.time);
      if (i < 0) i = c.times.length;
      if (i > 0) lines.push(`${c.name === 'rss' ? 'resident' : c.name} ${bytes(c.values[i - 1])}`);
    }
  } else return null;
  return (
    <div class="tip" aria-hidden="true" style={{ left: `${Math.min(props.x + 14, props.width - 300)}px`, top: `${props.y + 16}px` }}>
      <div class="tip-head">{lines[0]}</div>
      {lines.slice(1).map((line, i) => <div key={i}>{line}</div>)}
    </div>
  );
}
