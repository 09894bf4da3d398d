// Where the boxes of a flame graph stand: level by level, from left to right, wide ones first.

import { childrenOf, type Sums } from './sums.ts';

export interface Level {
  node: Uint32Array;
  start: Float64Array; // in the unit of the width, 0 is the left end
  width: Float64Array;
}

/** Levels are laid out when they are first looked at: most of a large graph never is. */
export class Layout {
  readonly depth: number; // how many levels there are
  readonly whole: number;
  private readonly at: Float64Array; // by node: the start of its box
  private readonly levels: Level[];

  constructor(readonly sums: Sums, readonly width: Float64Array) {
    this.whole = width[0];
    this.depth = deepest(sums, width);
    this.at = new Float64Array(width.length);
    this.levels = [{ node: Uint32Array.of(0), start: Float64Array.of(0), width: Float64Array.of(this.whole) }];
  }

  level(depth: number): Level {
    const { start, list } = childrenOf(this.sums.tree, this.width.length);
    for (let last; (last = this.levels.length - 1) < depth; )
      this.levels.push(nextLevel(this.levels[last], start, list, this.at, this.width));
    return this.levels[depth];
  }

  /** Where a node's box starts, or -1 if it has none. */
  start(node: number): number {
    if (node && !(this.width[node] > 0)) return -1;
    this.level(this.sums.tree.depth.data[node]);
    return this.at[node];
  }
}

function deepest(sums: Sums, width: Float64Array): number {
  const depth = sums.tree.depth.data;
  let most = 0;
  for (let i = 1; i < width.length; i++) if (width[i] > 0 && depth[i] > most) most = depth[i];
  return most + 1;
}

/** Widths are totals, or those given (of a comparison: the larger side, summed up). */
export function layOut(sums: Sums, width: Float64Array = sums.total): Layout {
  return new Layout(sums, width);
}

function nextLevel(level: Level, start: Uint32Array, list: Uint32Array, at: Float64Array, width: Float64Array): Level {
  const row = level.node;
  let size = 0;
  for (let i = 0; i < row.length; i++) size += start[row[i] + 1] - start[row[i]];
  const node = new Uint32Array(size);
  const starts = new Float64Array(size);
  const widths = new Float64Array(size);
  let filled = 0;
  for (let i = 0; i < row.length; i++) {
    const parent = row[i];
    const first = filled;
    for (let k = start[parent]; k < start[parent + 1]; k++) {
      const w = width[list[k]];
      if (w > 0) {
        node[filled] = list[k];
        widths[filled++] = w;
      }
    }
    if (filled - first > 1) {
      sortByWidth(node, first, filled, width);
      for (let k = first; k < filled; k++) widths[k] = width[node[k]];
    }
    let x = level.start[i];
    for (let k = first; k < filled; k++) {
      starts[k] = at[node[k]] = x;
      x += widths[k];
    }
  }
  return { node: node.subarray(0, filled), start: starts.subarray(0, filled), width: widths.subarray(0, filled) };
}

function sortByWidth(row: Uint32Array, from: number, to: number, width: Float64Array): void {
  if (to - from > 24) {
    row.subarray(from, to).sort((a, b) => width[b] - width[a] || a - b);
    return;
  }
  for (let i = from + 1; i < to; i++) {
    const node = row[i];
    let k = i - 1;
    for (; k >= from && width[row[k]] < width[node]; k--) row[k + 1] = row[k];
    row[k + 1] = node;
  }
}

/** The first box of a level that ends after `x`. */
export function firstAfter(level: Level, x: number, from = 0): number {
  let low = from;
  let high = level.node.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (level.start[middle] + level.width[middle] > x) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The box at (depth, x), or -1. */
export function nodeAt(layout: Layout, depth: number, x: number): number {
  if (depth < 0 || depth >= layout.depth) return -1;
  const level = layout.level(depth);
  const i = firstAfter(level, x);
  return i < level.node.length && level.start[i] <= x ? level.node[i] : -1;
}
