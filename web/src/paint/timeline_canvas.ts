// Tracks over time on a canvas: of a process its memory, of a thread its states, its spans and a
// flame chart. As in the flame graph, only what can be seen is looked at.

import { moment, TIME_STEPS } from '../data/format.ts';
import type { Curve } from '../data/recording.ts';
import { firstEndAfter, type Boxes, type Intervals } from '../data/tracks.ts';
import { Board } from './board.ts';
import type { Palette } from './colours.ts';

/** Of a process's curves, each drawn over the one before: resident memory and the heap in it. */
export const CURVE_ALPHA = [0.28, 0.5];
export const RULER = 26;
export const STRIP = 16;
export const BOX = 15;
/** Between the parts of a track. */
export const ROOM = 4;
const RUN = 8; // px that narrow boxes may be drawn as one

export interface Track {
  top: number;
  height: number;
  process: number;
  thread: number; // -1: the process itself
  curves: Curve[];
  intervals: Intervals | null;
  depth: number; // rows of spans that there is room for
  levels: Boxes[] | null; // null: folded
  from: number; // its life
  to: number;
}

/** What the boxes of a kind are called, and how they are filled. */
export interface Meaning {
  name(id: number): string;
  colour(id: number): number;
  found: ((id: number) => boolean) | null;
}

export interface TimelineScene {
  tracks: Track[];
  extent: number;
  palette: Palette;
  state: (event: number) => string; // colour
  calls: Meaning; // by node
  named: Meaning; // by symbol + 1
  marks: { time: number; text: string }[];
  ink: { line: string; soft: string; text: string; accent: string; ground: string; onAccent: string };
}

export interface Hit {
  track: Track;
  time: number;
  interval: number; // or -1
  boxes: Boxes | null; // that the pointer is in
  meaning: Meaning | null;
  box: number;
}

/** A row of a track, and a time: where keys have put the cursor. Row -1 is the strip of states, then
 * come the spans' rows and those of the chart. */
export interface Place {
  process: number;
  thread: number;
  row: number;
  time: number;
}

export class TimelineCanvas extends Board {
  scene: TimelineScene | null = null;
  cursor: Place | null = null;
  /** Spans by thread, as far as they have come. */
  spans = new Map<number, Boxes[]>();
  range: [number, number] | null = null;
  // Of the frame that is being drawn.
  private readonly buckets: number[][] = []; // by twice the colour, plus 1 for boxes that stand for many
  private readonly texts: { meaning: Meaning; id: number; many: number; hit: boolean; x: number; w: number; y: number }[] = [];
  private readonly instants: [number, number, number][] = [];

  constructor(canvas: HTMLCanvasElement) {
    super(canvas, 10.5);
  }

  protected extent(): { whole: number; least: number } {
    return { whole: this.scene?.extent ?? 1, least: 1000 };
  }

  /** Tracks that can be seen. */
  visible(): Track[] {
    const tracks = this.scene?.tracks ?? [];
    return tracks.filter((t) => t.top + t.height > this.scroll && t.top < this.scroll + this.height);
  }

  at(x: number, y: number): Hit | null {
    if (!this.scene || y < RULER) return null;
    const inside = y - RULER + this.scroll;
    const track = this.scene.tracks.find((t) => inside >= t.top && inside < t.top + t.height);
    if (!track) return null;
    return this.hit(track, this.rowAt(track, inside - track.top), this.value(x));
  }

  /** What a row of a track has at a time. */
  hit(track: Track, row: number, time: number): Hit {
    const hit: Hit = { track, time, interval: -1, boxes: null, meaning: null, box: -1 };
    if (track.intervals) {
      const i = firstEndAfter(track.intervals.end, time);
      if (i < track.intervals.length && track.intervals.start[i] <= time) hit.interval = i;
    }
    if (row >= 0) this.hitBoxes(hit, row);
    return hit;
  }

  rows(track: Track): number {
    return track.depth + (track.levels?.length ?? 0);
  }

  /** Boxes of a row, of the strip its intervals; null: it has none. */
  boxes(track: Track, row: number): { start: ArrayLike<number>; end: ArrayLike<number> } | null {
    return row < 0 ? track.intervals : this.level(track, row);
  }

  /** Top of a row, from the track's. */
  rowTop(track: Track, row: number): number {
    return row < 0 ? 0 : STRIP + ROOM + row * BOX + (track.depth && row >= track.depth ? ROOM : 0);
  }

  private rowAt(track: Track, y: number): number {
    const row = Math.floor((y - STRIP - ROOM) / BOX);
    return row < track.depth ? Math.max(-1, row) : Math.floor((y - STRIP - ROOM - (track.depth ? ROOM : 0)) / BOX);
  }

  private level(track: Track, row: number): Boxes | null {
    return (row < track.depth ? this.spans.get(track.thread)?.[row] : track.levels?.[row - track.depth]) ?? null;
  }

  private hitBoxes(hit: Hit, row: number): void {
    const { track, time } = hit;
    const level = this.level(track, row);
    if (!level) return;
    const near = (2 * (this.to - this.from)) / this.width;
    let i = firstEndAfter(level.end, time);
    if (i >= level.end.length || level.start[i] > time) {
      // Marks have no width: the pointer may be beside one.
      i = firstEndAfter(level.end, time - 2 * near);
      if (i >= level.end.length || level.start[i] > time + near || level.many?.[i] !== 0) return;
    }
    hit.boxes = level;
    hit.meaning = row < track.depth ? this.scene!.named : this.scene!.calls;
    hit.box = i;
  }

  /** The mark whose flag is there, or -1. */
  markAt(x: number, y: number): number {
    if (y > RULER || !this.scene) return -1;
    return this.scene.marks.findIndex((m) => Math.abs(this.x(m.time) - x) < 7);
  }

  protected paint(): void {
    const { context: c, scene } = this;
    if (!scene) return;
    c.save();
    c.beginPath();
    c.rect(0, RULER, this.width, this.height - RULER);
    c.clip();
    this.drawGrid(scene);
    for (const track of this.visible()) this.drawTrack(scene, track, track.top - this.scroll + RULER);
    this.drawBoxes(scene);
    this.drawTexts(scene);
    this.drawMarks(scene);
    this.drawRange(scene);
    this.drawCursor(scene);
    c.restore();
    this.drawRuler(scene);
  }

  private step(): number {
    const rough = ((this.to - this.from) / this.width) * 110;
    const round = TIME_STEPS.find((s) => s * 1e9 >= rough);
    if (rough >= 1000 && round) return Math.round(round * 1e9);
    const ten = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((n) => n * ten).find((n) => n >= rough)!;
  }

  private drawGrid(scene: TimelineScene): void {
    const step = this.step();
    this.context.fillStyle = scene.ink.line;
    for (let t = Math.ceil(this.from / step) * step; t < this.to; t += step)
      this.context.fillRect(Math.round(this.x(t)), RULER, 1, this.height);
  }

  private drawMarks(scene: TimelineScene): void {
    const { context: c } = this;
    c.strokeStyle = scene.ink.accent;
    c.setLineDash([3, 3]);
    c.beginPath();
    for (const mark of scene.marks) {
      const x = Math.round(this.x(mark.time)) + 0.5;
      if (x < 0 || x > this.width) continue;
      c.moveTo(x, RULER);
      c.lineTo(x, this.height);
    }
    c.stroke();
    c.setLineDash([]);
  }

  private drawRuler(scene: TimelineScene): void {
    const { context: c } = this;
    const step = this.step();
    c.fillStyle = scene.ink.ground;
    c.fillRect(0, 0, this.width, RULER);
    if (this.range) {
      c.fillStyle = scene.ink.accent;
      const left = Math.max(0, this.x(this.range[0]));
      c.fillRect(left, RULER - 4, Math.min(this.width, this.x(this.range[1])) - left, 3);
    }
    c.fillStyle = scene.ink.line;
    c.fillRect(0, RULER - 1, this.width, 1);
    c.font = '11px system-ui, sans-serif';
    c.textBaseline = 'middle';
    for (let t = Math.ceil(this.from / step) * step; t < this.to; t += step) {
      const x = Math.round(this.x(t));
      c.fillStyle = scene.ink.line;
      c.fillRect(x, 14, 1, 11);
      c.fillStyle = scene.ink.soft;
      if (x < this.width - 40) c.fillText(moment(t, step, this.to), x + 4, 13);
    }
    for (const mark of scene.marks) this.drawFlag(scene, this.x(mark.time));
  }

  private drawFlag(scene: TimelineScene, x: number): void {
    const { context: c } = this;
    if (x < -8 || x > this.width + 8) return;
    c.fillStyle = scene.ink.accent;
    c.fillRect(Math.round(x), 4, 1, RULER - 5);
    c.beginPath();
    c.moveTo(Math.round(x), 4);
    c.lineTo(x + 9, 7.5);
    c.lineTo(Math.round(x), 11);
    c.fill();
  }

  private drawTrack(scene: TimelineScene, track: Track, y: number): void {
    const { context: c } = this;
    c.fillStyle = scene.ink.line;
    c.fillRect(0, y + track.height - 1, this.width, 1);
    if (track.thread < 0) {
      this.drawLife(scene, track, y);
      for (const [i, curve] of track.curves.entries()) this.drawCurve(scene, track, curve, i, y);
      return;
    }
    if (track.intervals) this.drawStrip(scene, track.intervals, y + 3);
    const below = y + STRIP + ROOM;
    if (track.depth) this.drawLevels(scene, this.spans.get(track.thread)?.slice(0, track.depth) ?? [], scene.named, below);
    if (track.levels) this.drawLevels(scene, track.levels, scene.calls, below + track.depth * BOX + (track.depth ? ROOM : 0));
  }

  private drawLife(scene: TimelineScene, track: Track, y: number): void {
    const { context: c } = this;
    const left = Math.max(0, this.x(track.from));
    const right = Math.min(this.width, this.x(track.to));
    c.globalAlpha = 0.5;
    c.fillStyle = scene.ink.line;
    c.fillRect(left, y + 1, Math.max(1, right - left), track.height - 2);
    c.globalAlpha = 1;
  }

  private drawCurve(scene: TimelineScene, track: Track, curve: Curve, index: number, y: number): void {
    const { context: c } = this;
    let most = 1;
    for (const other of track.curves) for (const v of other.values) if (v > most) most = v;
    const scale = (track.height - 8) / most;
    const bottom = y + track.height - 2;
    let i = Math.max(0, firstEndAfter(curve.times, this.from) - 1);
    c.beginPath();
    c.moveTo(this.x(curve.times[i] ?? 0), bottom);
    for (; i < curve.times.length; i++) {
      const x = this.x(curve.times[i]);
      c.lineTo(x, bottom - curve.values[i] * scale);
      c.lineTo(this.x(curve.times[i + 1] ?? Math.max(track.to, curve.times[i])), bottom - curve.values[i] * scale);
      if (x > this.width) break;
    }
    c.lineTo(Math.min(this.width + 2, this.x(track.to)), bottom);
    c.globalAlpha = CURVE_ALPHA[Math.min(index, 1)];
    c.fillStyle = scene.ink.accent;
    c.fill();
    c.globalAlpha = 1;
  }

  /** Shares of each state by pixel, stacked: a pixel may hold many intervals. */
  private drawStrip(scene: TimelineScene, list: Intervals, y: number): void {
    const { context: c } = this;
    const scale = this.width / (this.to - this.from);
    const first = firstEndAfter(list.end, this.from);
    const busy = new Map<number, Float32Array>();
    for (let i = first; i < list.length && list.start[i] < this.to; i++) {
      const x0 = (list.start[i] - this.from) * scale;
      const x1 = (list.end[i] - this.from) * scale;
      if (x1 - x0 >= 3) {
        c.fillStyle = scene.state(list.event[i]);
        c.fillRect(Math.max(0, x0), y, Math.min(this.width, x1) - Math.max(0, x0), STRIP - 4);
        continue;
      }
      let columns = busy.get(list.event[i]);
      if (!columns) busy.set(list.event[i], (columns = new Float32Array(Math.ceil(this.width) + 1)));
      for (let x = Math.max(0, Math.floor(x0)); x < x1 && x < columns.length; x++)
        columns[x] += Math.min(x1, x + 1) - Math.max(x0, x);
    }
    const height = STRIP - 4;
    const used = new Float32Array(Math.ceil(this.width) + 1);
    for (const [event, columns] of busy) {
      c.fillStyle = scene.state(event);
      for (let x = 0; x < columns.length; x++) {
        if (!columns[x]) continue;
        const h = Math.min(height - used[x], Math.max(1, columns[x] * height));
        c.fillRect(x, y + height - used[x] - h, 1, h);
        used[x] += h;
      }
    }
  }

  private drawLevels(scene: TimelineScene, levels: Boxes[], meaning: Meaning, y: number): void {
    for (let depth = 0; depth < levels.length; depth++) {
      const top = y + depth * BOX;
      if (top > this.height) break;
      if (top + BOX >= RULER) this.collect(scene, levels[depth], meaning, top);
    }
  }

  /** Boxes of a level by colour, to be filled together. Narrow ones beside each other are one mark of a few pixels. */
  private collect(scene: TimelineScene, level: Boxes, meaning: Meaning, top: number): void {
    const colours = scene.palette.fills.length;
    const scale = this.width / (this.to - this.from);
    const pixel = 1 / scale;
    for (let i = firstEndAfter(level.end, this.from - 9 * pixel); i < level.end.length && level.start[i] < this.to; ) {
      const x = Math.max(-1, (level.start[i] - this.from) * scale);
      const w = Math.min(this.width + 1, (level.end[i] - this.from) * scale) - x;
      const id = level.id[i];
      const hit = meaning.found?.(id) ?? false;
      const colour = !meaning.found ? meaning.colour(id) : hit ? colours + 1 : colours;
      const many = level.many?.[i] ?? 1;
      if (many === 0) {
        this.instants.push([(level.start[i] - this.from) * scale, top, colour]);
        i++;
      } else if (w < 1) i = this.run(level, i, colour, meaning.found, hit ? 1 : RUN, x, top, pixel);
      else {
        this.put(2 * colour + (many > 1 ? 1 : 0), x, top, w > 3 ? w - 0.8 : w);
        if (w > 24) this.texts.push({ meaning, id, many, hit, x, w, y: top });
        i++;
      }
    }
  }

  /** Narrow boxes from `i` on, as far as they touch, up to `pixels`; returns the first after them. A box that a
   * search finds is a mark of its own. */
  private run(level: Boxes, i: number, colour: number, found: Meaning['found'], pixels: number, x: number, top: number, pixel: number): number {
    const { start, end } = level;
    let last = start[i] + pixel;
    let next = Math.max(i + 1, firstEndAfter(end, last, i + 1));
    const most = start[i] + pixels * pixel;
    while (next < end.length && last < most && end[next] - start[next] < pixel && start[next] <= last + pixel && level.many?.[next] !== 0) {
      if (found?.(level.id[next])) break;
      last = start[next] + pixel;
      next = Math.max(next + 1, firstEndAfter(end, last, next + 1));
    }
    this.put(2 * colour, x, top, (last - start[i]) / pixel);
    return next;
  }

  private put(bucket: number, x: number, y: number, w: number): void {
    (this.buckets[bucket] ??= []).push(x, y, w);
  }

  private drawBoxes(scene: TimelineScene): void {
    const { context: c } = this;
    const { fills, dimmed, found } = scene.palette;
    const fill = (colour: number) => fills[colour] ?? [dimmed, found][colour - fills.length];
    this.buckets.forEach((bucket, number) => {
      c.fillStyle = fill(number >> 1);
      c.globalAlpha = number & 1 ? 0.62 : 1;
      for (let i = 0; i < bucket.length; i += 3) c.fillRect(bucket[i], bucket[i + 1], bucket[i + 2], BOX - 1);
      bucket.length = 0;
    });
    c.globalAlpha = 1;
    for (const [x, top, colour] of this.instants) this.drawInstant(scene, x, top, fill(colour));
    this.instants.length = 0;
  }

  private drawTexts(scene: TimelineScene): void {
    const { context: c } = this;
    const { text, foundText, dimmedText } = scene.palette;
    c.font = this.font;
    c.textBaseline = 'middle';
    for (const { meaning, id, many, hit, x, w, y } of this.texts) {
      c.fillStyle = !meaning.found ? text : hit ? foundText : dimmedText;
      const name = meaning.name(id);
      this.text(many > 1 ? `${many}× ${name}` : name, Math.max(x, 0) + 4, Math.min(x + w, this.width) - 3, y + BOX / 2, 3);
    }
    this.texts.length = 0;
  }

  /** A mark: an instant of the program's own. */
  private drawInstant(scene: TimelineScene, x: number, top: number, fill: string): void {
    const { context: c } = this;
    const middle = top + (BOX - 1) / 2;
    c.beginPath();
    c.moveTo(x, middle - 6);
    c.lineTo(x + 5, middle);
    c.lineTo(x, middle + 6);
    c.lineTo(x - 5, middle);
    c.closePath();
    c.fillStyle = fill;
    c.fill();
    c.strokeStyle = scene.ink.soft;
    c.stroke();
  }

  private drawCursor(scene: TimelineScene): void {
    const { context: c, cursor } = this;
    const track = cursor && scene.tracks.find((t) => t.process === cursor.process && t.thread === cursor.thread);
    if (!cursor || !track) return;
    const hit = this.hit(track, cursor.row, cursor.time);
    const [boxes, i] = cursor.row < 0 ? [track.intervals, hit.interval] : [hit.boxes, hit.box];
    const left = Math.max(1, this.x(boxes && i >= 0 ? boxes.start[i] : cursor.time) - 1);
    const right = Math.min(this.width - 1, this.x(boxes && i >= 0 ? boxes.end[i] : cursor.time) + 1);
    const height = track.thread < 0 ? track.height : BOX;
    c.strokeStyle = scene.ink.text;
    c.lineWidth = 2;
    c.strokeRect(left, track.top + this.rowTop(track, cursor.row) - this.scroll + RULER + (cursor.row < 0 ? 1 : 0), Math.max(3, right - left), height - 1);
    c.lineWidth = 1;
  }

  private drawRange(scene: TimelineScene): void {
    if (!this.range) return;
    const { context: c } = this;
    const left = this.x(this.range[0]);
    const right = this.x(this.range[1]);
    c.fillStyle = scene.ink.ground;
    c.globalAlpha = 0.6;
    c.fillRect(0, RULER, Math.max(0, left), this.height);
    c.fillRect(right, RULER, Math.max(0, this.width - right), this.height);
    c.globalAlpha = 1;
  }
}
