// Spans of a trace and marks of the program: boxes by thread and depth, as the document or an
// answer of the server holds them. A box may stand for many spans that are too short to be told apart.

import type { Doc, SpanFacts } from './decode.ts';
import type { Boxes } from './tracks.ts';

/** Symbols with 1 added; 0 has no name. `many`: how many spans a box stands for, 0 is a mark. */
export type SpanLevels = Boxes[];

export interface SpanSet extends SpanFacts {
  tracks: Map<number, SpanLevels>; // by thread
}

export function spansOf(doc: Doc, facts: SpanFacts): SpanSet {
  const thread = doc.words('span.thread');
  const depth = doc.words('span.depth');
  const start = doc.column('span.start');
  const length = doc.column('span.length');
  const symbol = doc.words('span.symbol');
  const count = doc.column('span.count');
  const tracks = new Map<number, SpanLevels>();
  const filling = new Map<number, { start: number[]; end: number[]; id: number[]; many: number[] }[]>();
  for (let i = 0; i < thread.length; i++) {
    let levels = filling.get(thread[i]);
    if (!levels) filling.set(thread[i], (levels = []));
    while (levels.length <= depth[i]) levels.push({ start: [], end: [], id: [], many: [] });
    const level = levels[depth[i]];
    level.start.push(start[i]);
    level.end.push(start[i] + length[i]);
    level.id.push(symbol[i]);
    level.many.push(count[i]);
  }
  for (const [id, levels] of filling) tracks.set(id, levels);
  return { ...facts, tracks };
}

/** Does the set show the window as well as the server could? */
export function suffices(set: SpanSet | null, from: number, to: number, pixels: number, threads: number[]): boolean {
  if (!set || set.from > from || set.to < to) return false;
  if (threads.some((t) => set.threads.includes(t) && !set.tracks.has(t))) return false;
  return set.least <= (2 * (to - from)) / pixels;
}
