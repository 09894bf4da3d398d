// The timeline's canvas with its labels: what pointer and keys do, what is under the pointer, and
// spans, which a server sends for the window that is looked at.

import { useEffect, useRef, useState } from 'preact/hooks';
import { bytes, count, duration as formatDuration, moment } from '../data/format.ts';
import { suffices, type SpanSet } from '../data/spans.ts';
import { BOX, ROOM, RULER, STRIP, TimelineCanvas, type Hit, type Place, type TimelineScene, type Track } from '../paint/timeline_canvas.ts';
import { go, route } from '../route.ts';
import { held, recording, source } from '../store.ts';
import { Handling, type Drag } from '../ui/handling.ts';
import { step, type Way } from './cursor.ts';
import { stateName } from './timeline.tsx';

const WAIT = 60; // ms that a view must hold still before its spans are asked for
const AHEAD = 0.5; // of the window, to each side

class TimelineHandling extends Handling<TimelineCanvas> {
  onHit: (hit: Hit | null, x: number, y: number) => void = () => {};
  onMark: (index: number, x: number) => void = () => {};
  onCursor: (place: Place | null) => void = () => {};

  constructor(canvas: HTMLCanvasElement) {
    super(new TimelineCanvas(canvas));
    this.factor = 1.3;
  }

  protected hover(x: number, y: number): void {
    const mark = x < 0 ? -1 : this.view.markAt(x, y);
    this.onMark(mark, x);
    this.onHit(x < 0 ? null : this.view.at(x, y), x, y);
  }

  protected dragged(drag: Drag, x: number): void {
    const { view } = this;
    if (drag.y >= RULER) {
      this.shift(drag, x);
      return;
    }
    const [a, b] = [view.value(drag.x), view.value(x)];
    view.range = [Math.max(0, Math.min(a, b)), Math.max(a, b)];
    view.invalidate();
  }

  protected dropped(drag: Drag): void {
    if (drag.y < RULER) go({ range: this.view.range });
    else this.keep(true);
  }

  protected click(x: number, y: number): void {
    const { view } = this;
    if (y < RULER) {
      go({ range: null });
      return;
    }
    this.open(view.at(x, y));
  }

  /** Shows a box from edge to edge. */
  private open(hit: Hit | null): void {
    if (!hit?.boxes) return;
    const { view } = this;
    const [from, to] = [hit.boxes.start[hit.box], hit.boxes.end[hit.box]];
    const room = (to - from) * 0.05;
    if (to <= from) return;
    view.show(from - room, to + room);
    this.keep(false);
  }

  protected turned(): boolean {
    return false; // the list scrolls
  }

  protected keep(replace: boolean): void {
    const extent = this.view.scene?.extent ?? 1;
    const { from, to } = this.view;
    go({ zoom: to - from > extent * 0.999999 ? null : [from / extent, to / extent] }, replace);
  }

  protected keys(): Record<string, () => void> {
    const { view } = this;
    const to = (way: Way) => () => this.onCursor(step(view, way));
    return {
      ArrowLeft: to('left'),
      ArrowRight: to('right'),
      ArrowUp: to('up'),
      ArrowDown: to('down'),
      Enter: () => view.cursor && this.open(cursorHit(view)),
      Escape: () => {
        this.onCursor(null);
        go({ zoom: null, range: null });
      },
    };
  }
}

function cursorHit(view: TimelineCanvas): Hit | null {
  const { cursor } = view;
  const track = cursor && view.scene?.tracks.find((t) => t.process === cursor.process && t.thread === cursor.thread);
  return track ? view.hit(track, cursor.row, cursor.time) : null;
}

/** Brings the spans of what is looked at: out of the document, or from the server when the view holds still. */
class SpanFinder {
  private set: SpanSet | null = null;
  private timer = 0;
  private asking = false;

  constructor(private readonly view: TimelineCanvas, private readonly found: (depths: Map<number, number>) => void) {}

  look(): void {
    const r = recording.peek();
    if (!r?.head.spans) return;
    const own = r.spans();
    if (own && (!own.least || !source.spans)) {
      if (own !== this.set) this.take(own);
    } else if (source.spans && !this.timer) this.timer = window.setTimeout(() => void this.ask(), WAIT);
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private async ask(): Promise<void> {
    this.timer = 0;
    const { view } = this;
    const facts = recording.peek()?.head.spans;
    const threads = view.visible().filter((t) => t.thread >= 0).map((t) => t.thread).filter((t) => facts?.threads.includes(t));
    if (this.asking || !facts || !threads.length || !view.width) return;
    const { from, to } = view;
    const fresh = this.set?.total === facts.total;
    if (fresh && suffices(this.set, from, to, view.width, threads)) return;
    const more = AHEAD * (to - from);
    this.asking = true;
    const set = await source.spans!(Math.max(0, from - more), to + more, Math.ceil(view.width * (1 + 2 * AHEAD)), threads.slice(0, 200));
    this.asking = false;
    if (set) this.take(set);
    if (set && (view.from !== from || view.to !== to)) this.look();
  }

  private take(set: SpanSet): void {
    this.set = set;
    for (const [thread, levels] of set.tracks) this.view.spans.set(thread, levels);
    this.view.invalidate();
    this.found(new Map([...this.view.spans].map(([thread, levels]) => [thread, levels.length])));
  }
}

export function Tracks(props: { scene: TimelineScene; open: Set<number>; foldable: (thread: number) => boolean; flip: (thread: number) => void;
  setDepths: (change: (before: Map<number, number>) => Map<number, number>) => void }) {
  const { scene } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const handling = useRef<TimelineHandling | null>(null);
  const finder = useRef<SpanFinder | null>(null);
  const [tip, setTip] = useState<{ hit: Hit; x: number; y: number } | null>(null);
  const [said, setSaid] = useState('');
  const [mark, setMark] = useState<{ text: string; time: number; x: number } | null>(null);
  const [top, setTop] = useState(0);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const last = scene.tracks[scene.tracks.length - 1];
  const height = last ? last.top + last.height : 0;

  useEffect(() => {
    const h = new TimelineHandling(canvas.current!);
    handling.current = h;
    (canvas.current as HTMLCanvasElement & { timeline?: TimelineCanvas }).timeline = h.view;
    h.onHit = (hit, x, y) => setTip(hit ? { hit, x, y } : null);
    h.onMark = (index, x) => setMark(index < 0 ? null : { ...h.view.scene!.marks[index], x });
    h.onCursor = (place) => {
      h.view.cursor = place;
      h.view.invalidate();
      const hit = cursorHit(h.view);
      if (!place || !hit) {
        setTip(null);
        return;
      }
      const y = reveal(h.view, scroller.current!, hit.track, place);
      setTip({ hit, x: h.view.x(place.time), y });
      setSaid(sentence(hit));
    };
    const find = new SpanFinder(h.view, (found) => props.setDepths((before) =>
      [...found].every(([thread, depth]) => (before.get(thread) ?? 0) >= depth) ? before
        : new Map([...before, ...[...found].map(([t, d]) => [t, Math.max(d, before.get(t) ?? 0)] as [number, number])])));
    finder.current = find;
    h.view.onShow = () => find.look();
    const fit = () => {
      const box = canvas.current!.parentElement!;
      setSize({ width: box.clientWidth, height: scroller.current!.clientHeight });
      h.view.resize(box.clientWidth, scroller.current!.clientHeight);
    };
    const watch = new ResizeObserver(fit);
    watch.observe(scroller.current!);
    fit();
    return () => (watch.disconnect(), find.stop());
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
    finder.current!.look();
  };
  const visible = scene.tracks.filter((t) => t.top + t.height > top - 200 && t.top < top + size.height + 200);
  return (
    <div class="tracks" ref={scroller} onScroll={onScroll} tabIndex={0} role="region" aria-label="Tracks">
      <div class="tracks-inner" style={{ height: `${height + RULER}px` }}>
        <div class="track-labels" style={{ paddingTop: `${RULER}px` }}>
          {visible.map((t) => <Label key={`${t.process}.${t.thread}`} track={t} open={props.open.has(t.thread)} foldable={props.foldable(t.thread)} flip={props.flip} />)}
        </div>
        <div class="track-canvas" style={{ height: `${size.height}px` }}>
          <canvas ref={canvas} tabIndex={0} role="application" aria-roledescription="timeline"
            aria-label="What each thread did over time. Arrow keys go from box to box, Enter shows one from edge to edge, W and S zoom, A and D move, Escape shows all." />
          <div class="hidden" aria-live="polite">{said}</div>
          {tip && <Tip {...tip} width={size.width} />}
          {mark && (
            <div class="tip" aria-hidden="true" style={{ left: `${Math.max(0, Math.min(mark.x + 12, size.width - 240))}px`, top: `${RULER + 2}px` }}>
              <div class="tip-head">{mark.text}</div>
              <div>{moment(mark.time, 1e6)}</div>
            </div>
          )}
        </div>
      </div>
    </div>
  );
}

/** Scrolls and moves until the place can be seen; returns the y of the row in the window. */
function reveal(view: TimelineCanvas, scroller: HTMLElement, track: Track, place: Place): number {
  const top = track.top + view.rowTop(track, place.row);
  const room = scroller.clientHeight - RULER - 4 * BOX;
  if (top < scroller.scrollTop || top > scroller.scrollTop + room) scroller.scrollTop = Math.max(0, top - room / 2);
  if (place.time < view.from || place.time > view.to) {
    const half = (view.to - view.from) / 2;
    view.show(place.time - half, place.time + half);
  }
  return top - scroller.scrollTop + RULER + 8;
}

function sentence(hit: Hit): string {
  const r = recording.value!;
  const { track } = hit;
  const p = r.head.processes[track.process];
  const who = track.thread < 0 ? `process ${p.name} ${p.pid}` : `thread ${r.head.threads[track.thread].name} ${r.head.threads[track.thread].tid}`;
  return [moment(hit.time, 1000), ...describe(hit), who].join(', ');
}

function Label(props: { track: Track; open: boolean; foldable: boolean; flip: (thread: number) => void }) {
  const r = recording.value!;
  const { track } = props;
  const style = { top: `${track.top + RULER}px`, height: `${track.height}px` };
  if (track.thread < 0) {
    const p = r.head.processes[track.process];
    const rss = track.curves.reduce((most, c) => c.values.reduce((a, v) => Math.max(a, v), most), 0);
    return (
      <div class="track-label process-label" style={style} title={p.arguments || p.name}>
        <span class="process-name">{p.name || 'process'}</span> <span class="pid">{p.pid}</span>
        {rss > 0 && <span class="track-note">{bytes(rss)}</span>}
      </div>
    );
  }
  const t = r.head.threads[track.thread];
  return (
    <div class="track-label" style={style}>
      {props.foldable ? (
        <button type="button" class="fold-name" aria-expanded={props.open} onClick={() => props.flip(track.thread)}>
          <span aria-hidden="true">{props.open ? '▾' : '▸'}</span> {t.name || 'thread'} <span class="pid">{t.tid}</span>
        </button>
      ) : (
        <span class="fold-name faint">{t.name || 'thread'} <span class="pid">{t.tid}</span></span>
      )}
      {track.depth > 0 && <span class="track-part" style={{ top: `${STRIP + ROOM}px` }}>spans</span>}
      {track.depth > 0 && track.levels && <span class="track-part" style={{ top: `${STRIP + 2 * ROOM + track.depth * BOX}px` }}>samples</span>}
    </div>
  );
}

/** What is under the pointer, as lines. */
function describe(hit: Hit): string[] {
  const r = recording.value!;
  const list = hit.track.intervals;
  if (hit.boxes && hit.meaning && hit.box < hit.boxes.end.length) {
    const length = hit.boxes.end[hit.box] - hit.boxes.start[hit.box];
    const many = hit.boxes.many?.[hit.box] ?? 1;
    const name = hit.meaning.name(hit.boxes.id[hit.box]);
    if (many === 0) return [name, 'a mark of the program'];
    return many > 1 ? [`${count(many)} spans within ${formatDuration(length)}`, `the longest: ${name}`] : [name, `for ${formatDuration(length)}`];
  }
  if (list && hit.interval >= 0) {
    const event = r.head.events[list.event[hit.interval]].name;
    const stack = list.stack[hit.interval] >>> 1;
    const { tree } = held.value!;
    const lines = [stateName(event), `for ${formatDuration(list.end[hit.interval] - list.start[hit.interval])}`];
    return stack ? [...lines, `in ${tree.name(tree.nodeOf(stack))}`] : lines;
  }
  return hit.track.thread >= 0 ? [] : hit.track.curves.flatMap((c) => {
    let i = c.times.findIndex((t) => t > hit.time);
    if (i < 0) i = c.times.length;
    return i > 0 ? [`${c.name === 'rss' ? 'resident' : c.name} ${bytes(c.values[i - 1])}`] : [];
  });
}

function Tip(props: { hit: Hit; x: number; y: number; width: number }) {
  const lines = describe(props.hit);
  if (!lines.length) return null;
  return (
    <div class="tip" aria-hidden="true" style={{ left: `${Math.max(0, Math.min(props.x + 14, props.width - 300))}px`, top: `${props.y + 16}px` }}>
      <div class="tip-head">{moment(props.hit.time, 1000)}</div>
      {lines.map((line, i) => <div key={i}>{line}</div>)}
    </div>
  );
}
