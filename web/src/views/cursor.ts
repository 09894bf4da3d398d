// The timeline's cursor: what arrow keys do. It goes from box to box in a row, and from row to row at a
// time; boxes that are narrower than a pixel are passed over, as they are drawn.

import { firstEndAfter } from '../data/tracks.ts';
import type { Place, TimelineCanvas, Track } from '../paint/timeline_canvas.ts';

export type Way = 'left' | 'right' | 'up' | 'down';

/** Where a step leads; where there is nothing further, it stays. */
export function step(view: TimelineCanvas, way: Way): Place | null {
  const tracks = view.scene?.tracks ?? [];
  const at = view.cursor;
  const index = at ? tracks.findIndex((t) => t.process === at.process && t.thread === at.thread) : -1;
  if (!at || index < 0) return enter(view, tracks);
  if (way === 'left' || way === 'right') return { ...at, time: beside(view, tracks[index], at, way === 'right') };
  return way === 'down' ? down(view, tracks, index, at) : up(view, tracks, index, at);
}

/** The first thread that can be seen, in the middle of the window. */
function enter(view: TimelineCanvas, tracks: Track[]): Place | null {
  const seen = view.visible();
  const track = seen.find((t) => t.intervals?.length) ?? seen[0] ?? tracks[0];
  if (!track) return null;
  return { process: track.process, thread: track.thread, row: -1, time: (view.from + view.to) / 2 };
}

function beside(view: TimelineCanvas, track: Track, at: Place, right: boolean): number {
  const boxes = view.boxes(track, at.row);
  const pixel = (view.to - view.from) / view.width;
  if (!boxes) return Math.max(0, Math.min(view.scene!.extent, at.time + (right ? 20 : -20) * pixel));
  const { start, end } = boxes;
  let here = firstEndAfter(end, at.time);
  if (here > 0 && start[here - 1] === at.time) here--; // a mark has no width
  const inside = here < end.length && start[here] <= at.time;
  const next = right
    ? (inside ? Math.max(here + 1, firstEndAfter(end, end[here] + pixel)) : here)
    : Math.min(here - 1, inside ? firstEndAfter(end, start[here] - pixel) : here - 1);
  if (next < 0 || next >= end.length) return at.time;
  const [from, to] = [Math.max(start[next], view.from), Math.min(end[next], view.to)];
  return from < to ? (from + to) / 2 : (start[next] + end[next]) / 2;
}

function has(view: TimelineCanvas, track: Track, row: number, time: number): boolean {
  return view.hit(track, row, time).boxes !== null;
}

function down(view: TimelineCanvas, tracks: Track[], index: number, at: Place): Place {
  for (let row = at.row + 1; row < view.rows(tracks[index]); row++)
    if (has(view, tracks[index], row, at.time)) return { ...at, row };
  const next = tracks[index + 1];
  return next ? { process: next.process, thread: next.thread, row: -1, time: at.time } : at;
}

function up(view: TimelineCanvas, tracks: Track[], index: number, at: Place): Place {
  for (let row = at.row - 1; row >= 0; row--) if (has(view, tracks[index], row, at.time)) return { ...at, row };
  if (at.row >= 0) return { ...at, row: -1 };
  const before = tracks[index - 1];
  if (!before) return at;
  let row = view.rows(before) - 1;
  while (row >= 0 && !has(view, before, row, at.time)) row--;
  return { process: before.process, thread: before.thread, row, time: at.time };
}
