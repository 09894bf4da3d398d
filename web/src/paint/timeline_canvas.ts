// Tracks over time on a canvas: of a process its memory, of a thread its states and a flame chart.
// As in the flame graph, only what can be seen is looked at.

import { moment } from '../data/format.ts';
import type { Curve } from '../data/recording.ts';
import { firstEndAfter, type ChartLevel, type Intervals } from '../data/tracks.ts';
import type { Palette } from './colours.ts';

export const RULER = 26;
export const STRIP = 16;
export const BOX = 15;
const FONT = '10.5px ui-monospace, "SF Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace';

export interface Track {
  top: number;
  height: number;
  process: number;
  thread: number; // -1: the process itself
  curves: Curve[];
  intervals: Intervals | null;
  levels: ChartLevel[] | null; // null: folded
  from: number; // its life
  to: number;
}

export interface TimelineScene {
  tracks: Track[];
  extent: number;
  palette: Palette;
  state: (event: number) => string; // colour
  name: (node: number) => string;
  colour: (node: number) => number;
  found: ((node: number) => boolean) | null;
  ink: { line: string; soft: string; text: string; accent: string; ground: string };
}

export interface Hit {
  track: Track;
  time: number;
  interval: number; // or -1
  depth: number; // of the chart, or -1
  box: number; // in its level
}

export class TimelineCanvas {
  scene: TimelineScene | null = null;
  from = 0; // ns
  to = 1;
  scroll = 0;
  range: [number, number] | null = null;
  hit: Hit | null = null;
  width = 0;
  height = 0;
  cost = 0;
  private readonly context: CanvasRenderingContext2D;
  private glyph = 6.4;
  private waiting = 0;

  constructor(readonly canvas: HTMLCanvasElement) {
    this.context = canvas.getContext('2d')!;
  }

  resize(width: number, height: number): void {
    const ratio = devicePixelRatio || 1;
    this.width = width;
    this.height = height;
    this.canvas.width = Math.max(1, Math.round(width * ratio));
    this.canvas.height = Math.max(1, Math.round(height * ratio));
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.font = FONT;
    this.glyph = this.context.measureText('0123456789').width / 10;
    this.invalidate();
  }

  show(from: number, to: number): void {
    const extent = this.scene?.extent ?? 1;
    const span = Math.min(extent, Math.max(to - from, 1000));
    this.from = Math.max(0, Math.min(from, extent - span));
    this.to = this.from + span;
    this.invalidate();
  }

  invalidate(): void {
    if (!this.waiting) this.waiting = requestAnimationFrame(() => this.draw());
  }

  x(time: number): number {
    return ((time - this.from) / (this.to - this.from)) * this.width;
  }

  time(x: number): number {
    return this.from + (x / this.width) * (this.to - this.from);
  }

  at(x: number, y: number): Hit | null {
    if (!this.scene || y < RULER) return null;
    const inside = y - RULER + this.scroll;
    const track = this.scene.tracks.find((t) => inside >= t.top && inside < t.top + t.height);
    if (!track) return null;
    const time = this.time(x);
    const hit: Hit = { track, time, interval: -1, depth: -1, box: -1 };
    if (track.intervals) {
      const i = firstEndAfter(track.intervals.end, time);
      if (i < track.intervals.length && track.intervals.start[i] <= time) hit.interval = i;
    }
    const depth = Math.floor((inside - track.top - STRIP - 4) / BOX);
    const level = track.levels?.[depth];
    if (level) {
      const i = firstEndAfter(level.end, time);
      if (i < level.end.length && level.start[i] <= time) {
        hit.depth = depth;
        hit.box = i;
      }
    }
    return hit;
  }

  draw(): void {
    this.waiting = 0;
    const began = performance.now();
    const { context: c, scene } = this;
    c.clearRect(0, 0, this.width, this.height);
    if (!scene) return;
    c.save();
    c.beginPath();
    c.rect(0, RULER, this.width, this.height - RULER);
    c.clip();
    this.drawGrid(scene);
    for (const track of scene.tracks) {
      const y = track.top - this.scroll + RULER;
      if (y > this.height || y + track.height < RULER) continue;
      this.drawTrack(scene, track, y);
    }
    this.drawRange(scene);
    c.restore();
    this.drawRuler(scene);
    this.cost = performance.now() - began;
  }

  private step(): number {
    const rough = ((this.to - this.from) / this.width) * 110;
    const ten = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((n) => n * ten).find((n) => n >= rough)!;
  }

  private drawGrid(scene: TimelineScene): void {
    const step = this.step();
    this.context.fillStyle = scene.ink.line;
    for (let t = Math.ceil(this.from / step) * step; t < this.to; t += step)
      this.context.fillRect(Math.round(this.x(t)), RULER, 1, this.height);
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
      if (x < this.width - 40) c.fillText(moment(t, step), x + 4, 13);
    }
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
    if (track.levels) this.drawChart(scene, track.levels, y + STRIP + 4);
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
    c.globalAlpha = index ? 0.5 : 0.28;
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

  private drawChart(scene: TimelineScene, levels: ChartLevel[], y: number): void {
    const { context: c } = this;
    c.font = FONT;
    c.textBaseline = 'middle';
    for (let depth = 0; depth < levels.length; depth++) {
      const top = y + depth * BOX;
      if (top > this.height) break;
      if (top + BOX >= RULER) this.drawLevel(scene, levels[depth], top);
    }
  }

  private drawLevel(scene: TimelineScene, level: ChartLevel, top: number): void {
    const { context: c } = this;
    const { fills, dimmed, found } = scene.palette;
    const scale = this.width / (this.to - this.from);
    const pixel = 1 / scale;
    for (let i = firstEndAfter(level.end, this.from); i < level.end.length && level.start[i] < this.to; ) {
      const x = Math.max(-1, (level.start[i] - this.from) * scale);
      const w = Math.min(this.width + 1, (level.end[i] - this.from) * scale) - x;
      if (w < 1) {
        c.fillStyle = scene.found ? dimmed : fills[scene.colour(level.node[i])];
        c.fillRect(x, top, 1, BOX - 1);
        i = firstEndAfter(level.end, level.start[i] + pixel, i + 1);
        continue;
      }
      const hit = scene.found?.(level.node[i]) ?? false;
      c.fillStyle = !scene.found ? fills[scene.colour(level.node[i])] : hit ? found : dimmed;
      c.fillRect(x, top, w > 3 ? w - 0.8 : w, BOX - 1);
      const fits = Math.floor((Math.min(x + w, this.width) - Math.max(x, 0) - 7) / this.glyph);
      if (fits >= 3) {
        const name = scene.name(level.node[i]);
        c.fillStyle = !scene.found ? scene.palette.text : hit ? scene.palette.foundText : scene.palette.dimmedText;
        c.fillText(name.length <= fits ? name : `${name.slice(0, fits - 1)}…`, Math.max(x, 0) + 4, top + BOX / 2, w);
      }
      i++;
    }
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
