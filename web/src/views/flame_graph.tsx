// The flame graph as a part: canvas, pointer, keys, tooltip. Used whole, and twice in the sandwich.

import { useEffect, useRef, useState } from 'preact/hooks';
import { change, percent, percentChange, plural, value as formatValue } from '../data/format.ts';
import type { Layout } from '../data/layout.ts';
import { countsItself } from '../data/values.ts';
import { palette } from '../paint/colours.ts';
import { FlameCanvas, PITCH } from '../paint/flame_canvas.ts';
import { copyText } from '../ui/copy.ts';
import { Handling, type Drag } from '../ui/handling.ts';
import { dark } from '../ui/theme.ts';

const EASE = 170; // ms

export interface FlameGraphProps {
  label: string;
  layout: Layout;
  colour: (node: number) => number;
  found: ((symbol: number) => boolean) | null;
  upwards: boolean;
  zoom: [number, number] | null;
  setZoom: (zoom: [number, number] | null, replace: boolean) => void;
  mark?: (node: number) => void;
  open?: (node: number) => void;
  tip: (node: number) => string[];
  unit: string;
  height?: number;
}

class FlameHandling extends Handling<FlameCanvas> {
  props!: FlameGraphProps;
  onHover: (node: number, x: number, y: number) => void = () => {};
  onMark: (node: number) => void = () => {};
  private animation = 0;
  private pointer: [number, number] | null = null;

  constructor(canvas: HTMLCanvasElement) {
    super(new FlameCanvas(canvas));
    canvas.addEventListener('dblclick', (e) => {
      const node = this.view.at(e.offsetX, e.offsetY);
      if (node > 0) this.props.open?.(node);
    });
  }

  /** Moves there in a few frames, or at once for who wants no motion. */
  animate(from: number, to: number): void {
    cancelAnimationFrame(this.animation);
    const { view } = this;
    const [a, b] = [view.from, view.to];
    if (matchMedia('(prefers-reduced-motion: reduce)').matches || (Math.abs(a - from) < 1e-12 && Math.abs(b - to) < 1e-12)) {
      view.show(from, to);
      this.look();
      return;
    }
    const began = performance.now();
    const frame = (time: number) => {
      const t = Math.max(0, Math.min(1, (time - began) / EASE));
      const e = 1 - (1 - t) ** 3;
      view.show(a + (from - a) * e, b + (to - b) * e);
      if (t < 1) this.animation = requestAnimationFrame(frame);
      else this.look();
    };
    this.animation = requestAnimationFrame(frame);
  }

  zoomTo(node: number): void {
    const { layout } = this.props;
    if (node <= 0) this.props.setZoom(null, false);
    else {
      const from = layout.start(node) / layout.whole;
      this.props.setZoom([from, from + layout.width[node] / layout.whole], false);
    }
  }

  mark(node: number): void {
    this.view.marked = node;
    this.view.invalidate();
    this.onMark(node);
  }

  /** What has come under the pointer while it held still. */
  private look(): void {
    if (this.pointer) this.hover(...this.pointer);
  }

  protected hover(x: number, y: number): void {
    this.pointer = x < 0 ? null : [x, y];
    const node = x < 0 ? -1 : this.view.at(x, y);
    if (this.view.hovered !== node) {
      this.view.hovered = node;
      this.view.invalidate();
    }
    this.onHover(node, x, y);
  }

  protected dragged(drag: Drag, x: number, y: number): void {
    this.shift(drag, x);
    this.view.scrollTo(drag.scroll + (this.props.upwards ? y - drag.y : drag.y - y));
  }

  protected click(x: number, y: number): void {
    const node = this.view.at(x, y);
    this.mark(node);
    if (node >= 0) this.zoomTo(node);
  }

  protected turned(by: number): boolean {
    const before = this.view.scroll;
    this.view.scrollTo(before + (this.props.upwards ? -by : by));
    return this.view.scroll !== before;
  }

  protected keep(replace: boolean): void {
    const { from, to } = this.view;
    this.props.setZoom(to - from > 0.999999 ? null : [from, to], replace);
  }

  protected keys(): Record<string, () => void> {
    const { view } = this;
    return {
      ArrowUp: () => this.step(this.props.upwards ? 'in' : 'out'),
      ArrowDown: () => this.step(this.props.upwards ? 'out' : 'in'),
      ArrowLeft: () => this.step('left'),
      ArrowRight: () => this.step('right'),
      Enter: () => this.zoomTo(view.marked),
      Escape: () => this.props.setZoom(null, false),
      Home: () => this.mark(0),
      o: () => view.marked > 0 && this.props.open?.(view.marked),
      c: () => view.marked >= 0 && void copyText(this.props.layout.sums.tree.name(view.marked)),
    };
  }

  /** To the caller, the widest callee, or the box beside. */
  private step(where: 'in' | 'out' | 'left' | 'right'): void {
    const { layout } = this.props;
    const { tree } = layout.sums;
    const at = Math.max(0, this.view.marked);
    if (this.view.marked < 0) {
      this.mark(0);
      return;
    }
    const depth = tree.depth.data[at];
    if (where === 'out') {
      this.reveal(depth ? tree.parent.data[at] : 0);
      return;
    }
    const wanted = where === 'in' ? depth + 1 : depth;
    if (wanted >= layout.depth) return;
    const level = layout.level(wanted);
    const index = level.node.indexOf(at);
    const next = where === 'in'
      ? level.node.find((n) => tree.parent.data[n] === at)
      : level.node[index + (where === 'left' ? -1 : 1)];
    if (next !== undefined) this.reveal(next);
  }

  private reveal(node: number): void {
    const { view } = this;
    this.mark(node);
    const y = this.props.layout.sums.tree.depth.data[node] * PITCH;
    if (y < view.scroll) view.scrollTo(y);
    if (y + PITCH > view.scroll + view.height) view.scrollTo(y + PITCH - view.height);
    const [x, w] = view.box(node);
    if (x + w < 0 || x > view.width || w < 2) {
      const from = this.props.layout.start(node) / this.props.layout.whole;
      const part = this.props.layout.width[node] / this.props.layout.whole;
      const room = Math.max(part * 4, 1e-9);
      view.show(from - room / 2, from + room / 2);
      this.keep(true);
    }
  }
}

export function FlameGraph(props: FlameGraphProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const handling = useRef<FlameHandling | null>(null);
  const [tip, setTip] = useState<{ node: number; x: number; y: number } | null>(null);
  const [said, setSaid] = useState('');
  const night = dark.value;

  useEffect(() => {
    const h = new FlameHandling(canvas.current!);
    handling.current = h;
    (canvas.current as HTMLCanvasElement & { flame?: FlameCanvas }).flame = h.view;
    h.onHover = (node, x, y) => setTip(node < 0 ? null : { node, x, y });
    const watch = new ResizeObserver(() => h.view.resize(box.current!.clientWidth, box.current!.clientHeight));
    watch.observe(box.current!);
    h.view.resize(box.current!.clientWidth, box.current!.clientHeight);
    return () => watch.disconnect();
  }, []);

  useEffect(() => {
    const h = handling.current!;
    h.props = props;
    h.onMark = (node) => {
      if (node >= 0) setSaid(props.tip(node).join(', '));
      props.mark?.(node);
    };
    const fresh = h.view.scene?.layout !== props.layout;
    h.view.scene = { layout: props.layout, palette: palette(night), colour: props.colour, found: props.found, upwards: props.upwards };
    if (fresh && h.view.marked >= props.layout.width.length) h.view.marked = -1;
    const [from, to] = props.zoom ?? [0, 1];
    if (fresh) h.view.show(from, to);
    else h.animate(from, to);
    h.view.scrollTo(h.view.scroll);
    h.view.invalidate();
  }, [props.layout, props.colour, props.found, props.upwards, props.zoom?.[0], props.zoom?.[1], night]);

  const lines = tip && tip.node < props.layout.width.length ? props.tip(tip.node) : [];
  return (
    <div class="flame" ref={box} style={props.height ? { height: `${props.height}px` } : undefined}>
      <canvas ref={canvas} tabIndex={0} role="application" aria-label={props.label}
        aria-roledescription="flame graph" />
      <div class="hidden" aria-live="polite">{said}</div>
      {tip && lines.length > 0 && (
        <div class="tip" aria-hidden="true"
          style={{
            left: `${Math.max(4, Math.min(tip.x + 14, (box.current?.clientWidth ?? 0) - 330))}px`,
            ...(tip.y > (box.current?.clientHeight ?? 0) / 2
              ? { bottom: `${(box.current?.clientHeight ?? 0) - tip.y + 14}px` }
              : { top: `${tip.y + 18}px` }),
          }}>
          <div class="tip-head">{lines[0]}</div>
          {lines.slice(1).map((line, i) => <div key={i}>{line}</div>)}
        </div>
      )}
    </div>
  );
}

/** Lines of a box's tooltip. */
export function describeNode(layout: Layout, node: number, unit: string, noun: string,
  before: Float64Array | null): string[] {
  const { sums } = layout;
  const { tree } = sums;
  const r = tree.recording;
  const symbol = tree.symbol.data[node];
  const known = symbol < r.symbolName.length;
  const module = known ? r.moduleOf(symbol) : -1;
  const out = [tree.name(node)];
  const place = known ? r.placeOf(symbol) : '';
  const where = [module >= 0 ? r.moduleName[module] : '', place].filter(Boolean).join(' · ');
  if (where) out.push(where);
  if (before) {
    out.push(`before ${formatValue(before[node], unit)} · after ${formatValue(sums.total[node], unit)}`);
    out.push(`${change(sums.total[node] - before[node], unit)}${before[node] ? `, ${percentChange(before[node], sums.total[node])}` : ', new'}`);
    return out;
  }
  const parent = node > 0 ? tree.parent.data[node] : -1;
  const ofCaller = parent > 0 && sums.total[parent] ? `, ${percent(sums.total[node], sums.total[parent])} of its caller` : '';
  out.push(`total ${formatValue(sums.total[node], unit)} · ${percent(sums.total[node], sums.value)}${ofCaller}`);
  out.push(`self ${formatValue(sums.self[node], unit)} · ${percent(sums.self[node], sums.value)}`);
  const often = (countsItself(noun) ? sums.selfCount : sums.totalCount)[node];
  if (noun && often) out.push(plural(often, noun.replace(/s$/, ''), noun));
  return out;
}
