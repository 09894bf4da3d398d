// A chart of curves over time (uPlot): drag to choose a range, which then holds in every view.

import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { byteSteps, moment, ticks as marks, TIME_STEPS, value, when } from '../data/format.ts';
import { dark } from './theme.ts';

export interface Line {
  label: string;
  values: (number | null)[];
  colour: string;
  fill?: boolean;
  stepped?: boolean;
  dashed?: boolean;
  points?: boolean; // each value as a dot
}

export interface Mark {
  time: number;
  value: number;
  label: string;
}

export interface ChartProps {
  label: string;
  times: number[]; // ns
  lines: Line[];
  unit: string;
  format?: (v: number) => string;
  height?: number;
  range: [number, number] | null;
  extent: number; // ns
  choose?: (range: [number, number] | null) => void;
  marks?: Mark[];
  openMark?: (index: number) => void;
  legend?: boolean;
  dates?: number; // ms since 1970 of time 0: the axis then has dates
  moments?: { time: number; text: string }[]; // that somebody named
}

function alpha(colour: string, percent: number): string {
  return `color-mix(in srgb, ${colour} ${percent}%, transparent)`;
}

function css(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Numbers in circles at the peaks. */
function drawMarks(u: uPlot, marks: Mark[]): void {
  const ratio = devicePixelRatio || 1;
  const c = u.ctx;
  c.save();
  c.font = `600 ${10 * ratio}px system-ui, sans-serif`;
  c.textAlign = 'center';
  c.textBaseline = 'middle';
  for (const mark of marks) {
    const x = u.valToPos(mark.time / 1e9, 'x', true);
    const y = Math.max(u.valToPos(mark.value, 'y', true) - 12 * ratio, u.bbox.top + 9 * ratio);
    if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
    c.beginPath();
    c.arc(x, y, 8 * ratio, 0, Math.PI * 2);
    c.fillStyle = css('--accent-strong');
    c.fill();
    c.fillStyle = css('--on-accent');
    c.fillText(mark.label, x, y);
  }
  c.restore();
}

/** A time of the axis. */
function timeText(props: ChartProps, time: number, step: number, last = time): string {
  if (props.dates === undefined) return moment(time, step, last);
  const text = when(props.dates + time / 1e6); // 2026-11-16 13:30:51
  return step >= 20 * 3600e9 ? text.slice(0, 10) : text.slice(step >= 3600e9 ? 5 : 11, step < 60e9 ? 19 : 16);
}

/** Lines at moments that have names. */
function drawMoments(u: uPlot, moments: { time: number; text: string }[]): void {
  const c = u.ctx;
  c.save();
  c.strokeStyle = css('--accent');
  c.setLineDash([4, 4]);
  c.beginPath();
  for (const m of moments) {
    const x = u.valToPos(m.time / 1e9, 'x', true);
    if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
    c.moveTo(x, u.bbox.top);
    c.lineTo(x, u.bbox.top + u.bbox.height);
  }
  c.stroke();
  c.restore();
}

function options(props: ChartProps, width: number): uPlot.Options {
  const faint = css('--line');
  const text = css('--text-soft');
  const format = props.format ?? ((v: number) => value(v, props.unit));
  const font = '11px system-ui, sans-serif';
  const axis = { stroke: text, grid: { stroke: faint, width: 1 }, ticks: { show: false }, font };
  return {
    width,
    height: props.height ?? 120,
    padding: [12, 26, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: !!props.choose, y: false, setScale: false }, points: { size: 6 }, y: false },
    select: { show: true, left: 0, top: 0, width: 0, height: 0 },
    scales: { x: { time: false, range: () => [0, Math.max(props.extent, 1) / 1e9] },
      y: { range: (_u, _low, high) => [0, high > 0 ? high * 1.12 : 1] } },
    axes: [
      { ...axis, size: 26, values: (_u, ticks) => ticks.map((t) => timeText(props, t * 1e9, (ticks[1] - ticks[0]) * 1e9, ticks[ticks.length - 1] * 1e9)), ...(props.dates ? { space: 90 } : { incrs: TIME_STEPS, space: props.extent >= 120e9 ? 70 : 50 }) },
      { ...axis, size: 72, values: (_u, ticks) => marks(ticks.map(format)), space: 26, ...(props.unit === 'bytes' && { incrs: (_u: uPlot, _axis: number, _low: number, high: number) => byteSteps(high) }) },
    ],
    series: [
      {},
      ...props.lines.map((line) => ({
        label: line.label,
        stroke: line.colour,
        width: 1.5,
        dash: line.dashed ? [4, 4] : undefined,
        fill: line.fill ? alpha(line.colour, 18) : undefined,
        points: { show: !!line.points, size: 5, fill: line.colour },
        spanGaps: false,
        paths: line.stepped ? uPlot.paths.stepped!({ align: 1 }) : undefined,
      })),
    ],
    hooks: {
      setSelect: [(u) => {
        if (!props.choose || u.select.width < 3) return;
        const from = u.posToVal(u.select.left, 'x') * 1e9;
        const to = u.posToVal(u.select.left + u.select.width, 'x') * 1e9;
        props.choose([Math.max(0, from), Math.min(props.extent, to)]);
      }],
      draw: [(u) => {
        if (props.moments?.length) drawMoments(u, props.moments);
        if (props.marks) drawMarks(u, props.marks);
      }],
    },
  };
}

function showRange(u: uPlot, range: [number, number] | null): void {
  if (!range) {
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    return;
  }
  const left = u.valToPos(range[0] / 1e9, 'x');
  const right = u.valToPos(range[1] / 1e9, 'x');
  u.setSelect({ left, top: 0, width: right - left, height: u.over.clientHeight }, false);
}

export function Chart(props: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const tip = useRef<HTMLDivElement>(null);
  const now = useRef(props);
  now.current = props;
  const theme = dark.value;
  useEffect(() => {
    const element = box.current!;
    const data = [props.times.map((t) => t / 1e9), ...props.lines.map((l) => l.values)];
    const u = new uPlot(options(props, element.clientWidth || 600), data as uPlot.AlignedData, element);
    showRange(u, props.range);
    const move = () => tell(u, now.current, tip.current!);
    u.over.addEventListener('mousemove', move);
    u.over.addEventListener('mouseleave', () => (tip.current!.hidden = true));
    const watch = new ResizeObserver(() => {
      if (!element.clientWidth) return;
      u.setSize({ width: element.clientWidth, height: props.height ?? 120 });
      showRange(u, now.current.range);
    });
    watch.observe(element);
    return () => {
      watch.disconnect();
      u.destroy();
    };
  }, [props.times, props.lines, props.extent, props.range?.[0], props.range?.[1], theme, props.marks, props.moments?.length]);
  return (
    <figure class="chart">
      <div ref={box} class="chart-box" role="img" aria-label={describe(props)} />
      <div ref={tip} class="tip" hidden aria-hidden="true" />
      {props.legend !== false && props.lines.length > 1 && (
        <figcaption class="legend">
          {props.lines.map((l) => (
            <span key={l.label} class="legend-item">
              <span class={`legend-line ${l.dashed ? 'dashed' : ''}`} style={{ borderColor: l.colour }} aria-hidden="true" />
              {l.label}
            </span>
          ))}
        </figcaption>
      )}
    </figure>
  );
}

function describe(props: ChartProps): string {
  const format = props.format ?? ((v: number) => value(v, props.unit));
  const highest = props.lines.map((l) => {
    let most = 0;
    for (const v of l.values) if (v !== null && v > most) most = v;
    return `${l.label}: at most ${format(most)}`;
  });
  return `${props.label}. ${highest.slice(0, 6).join('; ')}`;
}

function tell(u: uPlot, props: ChartProps, tip: HTMLElement): void {
  const i = u.cursor.idx;
  if (i === null || i === undefined) {
    tip.hidden = true;
    return;
  }
  const format = props.format ?? ((v: number) => value(v, props.unit));
  tip.hidden = false;
  tip.replaceChildren();
  const add = (text: string, strong = false) => {
    const row = document.createElement('div');
    row.textContent = text;
    if (strong) row.className = 'tip-head';
    tip.append(row);
  };
  add(timeText(props, props.times[i], 1e6), true);
  for (const line of props.lines.slice(0, 8)) {
    const v = line.values[i];
    if (v !== null && v !== undefined) add(`${line.label}  ${format(v)}`);
  }
  const left = (u.cursor.left ?? 0) + u.over.offsetLeft;
  tip.style.left = `${Math.min(left + 14, u.width - tip.offsetWidth - 4)}px`;
  tip.style.top = '8px';
}
