// Curves computed from rows of time, and curves of several sources on one axis.

import type { Curve, Recording } from './recording.ts';
import { waitEvents } from './sums.ts';

export interface Usage {
  times: number[];
  values: number[];
}

/** How many CPUs were busy (or how often something happened a second), in at most `most` steps. */
export function usage(r: Recording, events: number[], mask: Uint8Array | null, most = 240): Usage {
  const chosen = new Uint8Array(r.head.events.length);
  for (const e of events) chosen[e] = 1;
  const extent = Math.max(r.head.meta.duration, 1);
  const least = Math.max(r.width, ...events.map((e) => (r.head.events[e].unit === 'ns' ? r.head.events[e].period * 10 : 0)));
  const steps = Math.max(1, Math.floor(extent / Math.max(least, extent / most)));
  const step = extent / steps;
  const sums = new Float64Array(steps);
  const waits = waitEvents(r);
  const ns = events.length > 0 && r.head.events[events[0]].unit === 'ns';
  const { event, thread, bucket, value } = r.times;
  for (let i = 0; i < r.times.length; i++) {
    if (!chosen[event.data[i]] || (mask && !mask[thread.data[i]])) continue;
    // A wait begins in its bucket; samples stand for the time before.
    const length = ns ? value.data[i] : 0;
    const at = waits[event.data[i]] ? bucket.data[i] * r.width + length : (bucket.data[i] + 1) * r.width;
    spread(sums, step, at - length, Math.min(extent, at), value.data[i]);
  }
  const times: number[] = [];
  const values: number[] = [];
  for (let i = 0; i < steps; i++) {
    times.push((i + 0.5) * step);
    values.push(ns ? sums[i] / step : (sums[i] * 1e9) / step);
  }
  return { times, values };
}

/** Over the steps that a time lies in, each by its part of it. */
function spread(sums: Float64Array, step: number, from: number, end: number, value: number): void {
  const last = Math.min(sums.length - 1, Math.max(0, Math.ceil(end / step) - 1));
  const start = Math.max(0, from);
  const first = Math.min(last, Math.floor(start / step));
  if (first === last || end <= start) {
    sums[last] += value;
    return;
  }
  for (let i = first; i <= last; i++)
    sums[i] += (value * (Math.min(end, (i + 1) * step) - Math.max(start, i * step))) / (end - start);
}

/** Curves as they are, but that nothing is held by a process that has ended. */
export function closedCurves(r: Recording): Curve[] {
  return r.curves.map((c) => {
    const end = r.head.processes[c.process]?.end;
    const last = c.times.length - 1;
    if (end === undefined || last < 0 || !c.values[last] || c.unit !== 'bytes') return c;
    return { ...c, times: [...c.times, Math.max(end, c.times[last])], values: [...c.values, 0] };
  });
}

/** The value of a curve at each of the times: that of the last point not after it. */
export function resample(curve: Curve, times: number[]): (number | null)[] {
  let at = -1;
  return times.map((t) => {
    while (at + 1 < curve.times.length && curve.times[at + 1] <= t) at++;
    return at < 0 ? null : curve.values[at];
  });
}

/** All times that any of the curves has a point at. */
export function unionTimes(curves: Curve[]): number[] {
  const all = new Set<number>();
  for (const curve of curves) for (const t of curve.times) all.add(t);
  return [...all].sort((a, b) => a - b);
}

export function addCurves(curves: Curve[]): { times: number[]; values: number[] } {
  const times = unionTimes(curves);
  const values = new Array<number>(times.length).fill(0);
  for (const curve of curves)
    resample(curve, times).forEach((v, i) => {
      values[i] += v ?? 0;
    });
  return { times, values };
}

/** Of a count that only grows: how much it grew a second, between each two of its points. */
export function rates(r: Recording, curve: Curve): Curve {
  const process = r.head.processes[curve.process];
  const times: number[] = [];
  const values: number[] = [];
  let [time, value] = [process?.start ?? 0, 0];
  for (let i = 0; i < curve.times.length; i++) {
    times.push(time);
    values.push(curve.times[i] > time ? (Math.max(0, curve.values[i] - value) * 1e9) / (curve.times[i] - time) : 0);
    [time, value] = [curve.times[i], curve.values[i]];
  }
  if (times.length) {
    times.push(time);
    values.push(0);
  }
  return { ...curve, times, values };
}
