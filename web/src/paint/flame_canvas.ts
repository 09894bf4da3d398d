// The flame graph on a canvas. Only what can be seen is looked at: of each visible level the boxes
// from the left edge on, found by halving; runs of boxes narrower than a pixel are one
// mark, and the next box is found by halving again. So a frame costs what the window has
// pixels, not what the graph has boxes.

import { firstAfter, nodeAt, type Layout } from '../data/layout.ts';
import { Board } from './board.ts';
import type { Palette } from './colours.ts';

export const PITCH = 19;
const GAP = 1;
const PADDING = 5;
const TEXT_LEAST = 28;

export interface FlameScene {
  layout: Layout;
  palette: Palette;
  colour(node: number): number;
  /** By symbol: found by the search? null: nothing is searched. */
  found: ((symbol: number) => boolean) | null;
  /** Grows upwards? */
  upwards: boolean;
}

export class FlameCanvas extends Board {
  scene: FlameScene | null = null;
  hovered = -1;
  marked = -1;
  /** Boxes in the last frame. */
  drawn = 0;
  private buckets: number[][] = [];
  private texts: [number, number, number, number, boolean][] = [];

  constructor(canvas: HTMLCanvasElement) {
    super(canvas, 11.5);
  }

  protected extent(): { whole: number; least: number } {
    return { whole: 1, least: 1e-9 };
  }

  get contentHeight(): number {
    return (this.scene?.layout.depth ?? 0) * PITCH + 2;
  }

  scrollTo(y: number): void {
    this.scroll = Math.max(0, Math.min(y, this.contentHeight - this.height));
    this.invalidate();
  }

  /** Top of a level's boxes in the window. */
  top(depth: number): number {
    const down = depth * PITCH - this.scroll;
    return this.scene?.upwards ? this.height - PITCH - down : down;
  }

  at(x: number, y: number): number {
    const scene = this.scene;
    if (!scene) return -1;
    const down = scene.upwards ? this.height - y : y;
    const depth = Math.floor((down + this.scroll) / PITCH);
    return nodeAt(scene.layout, depth, this.value(x) * scene.layout.whole);
  }

  /** Left and width of a node's box in the window. */
  box(node: number): [number, number] {
    const { layout } = this.scene!;
    const scale = this.width / (this.to - this.from);
    return [
      (layout.start(node) / layout.whole - this.from) * scale,
      (layout.width[node] / layout.whole) * scale,
    ];
  }

  protected paint(): void {
    const { scene } = this;
    if (!scene || !scene.layout.whole) return;
    this.collect(scene);
    this.paintBoxes(scene);
    this.paintTexts(scene);
    this.paintMarks(scene);
  }

  private collect(scene: FlameScene): void {
    const { layout } = scene;
    const scale = this.width / ((this.to - this.from) * layout.whole);
    const left = this.from * layout.whole;
    const first = Math.max(0, Math.floor(this.scroll / PITCH));
    const last = Math.min(layout.depth - 1, Math.floor((this.scroll + this.height) / PITCH));
    for (const bucket of this.buckets) if (bucket) bucket.length = 0;
    this.texts.length = 0;
    this.drawn = 0;
    for (let depth = first; depth <= last; depth++) this.collectLevel(scene, depth, left, scale);
  }

  private collectLevel(scene: FlameScene, depth: number, left: number, scale: number): void {
    const level = scene.layout.level(depth);
    const y = this.top(depth);
    const right = left + this.width / scale;
    const faint = scene.palette.fills.length;
    const pixel = 1 / scale;
    const { symbol } = scene.layout.sums.tree;
    let run = -1; // where a run of narrow boxes began
    let runEnd = 0;
    for (let i = firstAfter(level, left); i < level.node.length && level.start[i] < right; ) {
      const start = level.start[i];
      const width = level.width[i];
      if (width < pixel) {
        const x = (start - left) * scale;
        if (run < 0 || x > runEnd + 1) {
          if (run >= 0) this.put(faint, run, y, Math.max(1, runEnd - run));
          run = x;
        }
        runEnd = x + width * scale;
        const next = firstAfter(level, start + pixel, i + 1);
        if (next > i + 1) runEnd = Math.max(runEnd, (level.start[next - 1] + level.width[next - 1] - left) * scale);
        i = next;
        continue;
      }
      if (run >= 0) {
        this.put(faint, run, y, Math.max(1, runEnd - run));
        run = -1;
      }
      const node = level.node[i];
      const x = Math.max(-1, (start - left) * scale);
      const w = Math.min(this.width + 1, (start + width - left) * scale) - x;
      const found = scene.found ? scene.found(symbol.data[node]) : false;
      const colour = !scene.found ? scene.colour(node) : found ? faint + 2 : faint + 1;
      this.put(colour, x, y, w > 3 ? w - GAP : w);
      if (w >= TEXT_LEAST) this.texts.push([node, x, y, w, found]);
      i++;
    }
    if (run >= 0) this.put(faint, run, y, Math.max(1, runEnd - run));
  }

  private put(colour: number, x: number, y: number, w: number): void {
    (this.buckets[colour] ??= []).push(x, y, w);
    this.drawn++;
  }

  private paintBoxes(scene: FlameScene): void {
    const { context: c } = this;
    const { fills, faint, dimmed, found } = scene.palette;
    for (let colour = 0; colour < this.buckets.length; colour++) {
      const bucket = this.buckets[colour];
      if (!bucket?.length) continue;
      c.fillStyle = fills[colour] ?? [faint, dimmed, found][colour - fills.length];
      for (let i = 0; i < bucket.length; i += 3)
        c.fillRect(bucket[i], bucket[i + 1], bucket[i + 2], PITCH - GAP);
    }
  }

  private paintTexts(scene: FlameScene): void {
    const { context: c } = this;
    const { tree } = scene.layout.sums;
    c.font = this.font;
    c.textBaseline = 'middle';
    for (const [node, x, y, w, found] of this.texts) {
      c.fillStyle = !scene.found ? scene.palette.text : found ? scene.palette.foundText : scene.palette.dimmedText;
      this.text(tree.name(node), Math.max(x, 0) + PADDING, x + w - 3, y + PITCH / 2, 2);
    }
  }

  private paintMarks(scene: FlameScene): void {
    const { context: c } = this;
    for (const [node, strong] of [[this.hovered, false], [this.marked, true]] as const) {
      if (node < 0 || node >= scene.layout.width.length || scene.layout.start(node) < 0) continue;
      const [x, w] = this.box(node);
      const y = this.top(scene.layout.sums.tree.depth.data[node]);
      const left = Math.max(0, x);
      const right = Math.min(this.width, x + Math.max(w - GAP, 1.5));
      c.strokeStyle = scene.palette.text;
      c.globalAlpha = strong ? 1 : 0.55;
      c.lineWidth = strong ? 2 : 1;
      c.strokeRect(left + 0.5, y + 0.5, Math.max(1, right - left - 1), PITCH - GAP - 1);
      c.globalAlpha = 1;
    }
  }
}
