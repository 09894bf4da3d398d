// What pointer, wheel and keys do to a board, be it a flame graph or a timeline: drag to move, wheel
// with Ctrl to zoom, W A S D. Holds no state of the view but the board.

import type { Board } from '../paint/board.ts';

export interface Drag {
  x: number;
  y: number;
  from: number;
  to: number;
  scroll: number;
  moved: boolean;
}

const CLICK = 4; // px that a click may move

export abstract class Handling<B extends Board> {
  protected drag: Drag | null = null;
  /** How much a key zooms and moves. */
  protected factor = 1.25;
  protected part = 0.15;

  constructor(readonly view: B) {
    const { canvas } = view;
    canvas.addEventListener('pointerdown', (e) => this.press(e));
    canvas.addEventListener('pointermove', (e) => this.move(e));
    canvas.addEventListener('pointerup', (e) => this.release(e));
    canvas.addEventListener('pointercancel', () => (this.drag = null));
    canvas.addEventListener('pointerleave', () => this.hover(-1, -1));
    canvas.addEventListener('wheel', (e) => this.wheel(e), { passive: false });
    canvas.addEventListener('keydown', (e) => this.key(e));
  }

  /** The pointer is there; -1: it is nowhere. */
  protected abstract hover(x: number, y: number): void;
  protected abstract click(x: number, y: number): void;
  protected abstract dragged(drag: Drag, x: number, y: number): void;
  /** After a drag. */
  protected dropped(_drag: Drag): void {
    this.keep(true);
  }
  /** The wheel alone; false: not used here, so the page scrolls. */
  protected abstract turned(by: number): boolean;
  /** Puts what is shown into the address. */
  protected abstract keep(replace: boolean): void;
  protected abstract keys(): Record<string, () => void>;

  zoom(at: number, by: number): void {
    const { view } = this;
    const span = (view.to - view.from) * by;
    const centre = view.from + at * (view.to - view.from);
    view.show(centre - at * span, centre - at * span + span);
    this.keep(true);
  }

  pan(part: number): void {
    const { view } = this;
    const by = part * (view.to - view.from);
    view.show(view.from + by, view.to + by);
    this.keep(true);
  }

  private press(e: PointerEvent): void {
    if (e.button !== 0) return;
    const { from, to, scroll, canvas } = this.view;
    this.drag = { x: e.offsetX, y: e.offsetY, from, to, scroll, moved: false };
    canvas.setPointerCapture(e.pointerId);
  }

  private move(e: PointerEvent): void {
    const { drag } = this;
    if (!drag) {
      this.hover(e.offsetX, e.offsetY);
      return;
    }
    if (!drag.moved && Math.hypot(e.offsetX - drag.x, e.offsetY - drag.y) < CLICK) return;
    drag.moved = true;
    this.hover(-1, -1);
    this.dragged(drag, e.offsetX, e.offsetY);
  }

  private release(e: PointerEvent): void {
    const { drag } = this;
    this.drag = null;
    if (drag?.moved) this.dropped(drag);
    else if (drag) this.click(e.offsetX, e.offsetY);
  }

  protected shift(drag: Drag, x: number): void {
    const by = ((drag.x - x) / this.view.width) * (drag.to - drag.from);
    this.view.show(drag.from + by, drag.to + by);
  }

  private wheel(e: WheelEvent): void {
    const { view } = this;
    const scale = e.deltaMode === 1 ? 20 : 1;
    if (e.ctrlKey || e.metaKey) this.zoom(e.offsetX / view.width, Math.exp((e.deltaY * scale) / 300));
    else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.pan(((e.deltaX || e.deltaY) * scale) / view.width);
    else if (!this.turned(e.deltaY * scale)) return;
    e.preventDefault();
    this.hover(e.offsetX, e.offsetY);
  }

  private key(e: KeyboardEvent): void {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const closer = () => this.zoom(0.5, 1 / this.factor);
    const wider = () => this.zoom(0.5, this.factor);
    const all: Record<string, () => void> = {
      w: closer, '+': closer, s: wider, '-': wider,
      a: () => this.pan(-this.part), d: () => this.pan(this.part),
      ...this.keys(),
    };
    if (!Object.hasOwn(all, e.key)) return;
    all[e.key]();
    e.preventDefault();
  }
}
