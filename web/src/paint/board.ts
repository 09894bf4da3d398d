// A canvas that shows a part of something wide: what the flame graph and the timeline share. It is
// drawn at most once a frame, and texts are cut to their boxes without being measured.

const FAMILY = 'ui-monospace, "SF Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace';

export abstract class Board {
  /** The part that is shown, in the unit of the whole. */
  from = 0;
  to = 1;
  scroll = 0;
  width = 0;
  height = 0;
  /** Milliseconds that the last frame took to draw. */
  cost = 0;
  /** Called when another part is shown. */
  onShow: () => void = () => {};
  protected readonly context: CanvasRenderingContext2D;
  protected readonly font: string;
  private glyph = 7;
  private waiting = 0;

  constructor(readonly canvas: HTMLCanvasElement, size: number) {
    this.context = canvas.getContext('2d')!;
    this.font = `${size}px ${FAMILY}`;
  }

  /** How much there is to show, and the least part of it that makes sense. */
  protected abstract extent(): { whole: number; least: number };
  protected abstract paint(): void;

  resize(width: number, height: number): void {
    const ratio = devicePixelRatio || 1;
    this.width = width;
    this.height = height;
    this.canvas.width = Math.max(1, Math.round(width * ratio));
    this.canvas.height = Math.max(1, Math.round(height * ratio));
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.font = this.font;
    this.glyph = this.context.measureText('0123456789').width / 10;
    this.invalidate();
  }

  show(from: number, to: number): void {
    const { whole, least } = this.extent();
    const span = Math.min(whole, Math.max(to - from, least));
    this.from = Math.max(0, Math.min(from, whole - span));
    this.to = this.from + span;
    this.invalidate();
    this.onShow();
  }

  invalidate(): void {
    if (!this.waiting) this.waiting = requestAnimationFrame(() => this.draw());
  }

  draw(): void {
    this.waiting = 0;
    const began = performance.now();
    this.context.clearRect(0, 0, this.width, this.height);
    this.paint();
    this.cost = performance.now() - began;
  }

  /** Where it stands in the window. */
  x(at: number): number {
    return ((at - this.from) / (this.to - this.from)) * this.width;
  }

  /** What stands there. */
  value(x: number): number {
    return this.from + (x / this.width) * (this.to - this.from);
  }

  /** A text from `left` to `right`, cut where it does not fit; none where hardly any of it would. */
  protected text(name: string, left: number, right: number, middle: number, least: number): void {
    const fits = Math.floor((right - left) / this.glyph);
    if (fits < least) return;
    this.context.fillText(name.length <= fits ? name : `${name.slice(0, fits - 1)}…`, left, middle, right - left);
  }
}
