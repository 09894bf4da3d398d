// Where the boxes of a flame graph stand: level by level, from left to right, wide ones first.

import { childrenOf, type Sums } from './sums.ts';

export interface Level {
  node: Uint32Array;
  start: Float64Array; // in the unit of the width, 0 is the left end
  width: Float64Array;
}

export interface Layout {
  sums: Sums;
  levels: Level[];
  whole: number;
  /** By node: the start of its box, or -1. */
  start: Float64Array;
  width: Float64Array;
}

/** Widths are totals, or those given (of a comparison: the larger side, summed up). */
export function layOut(sums: Sums, width: Float64Array = sums.total): Layout {
  const length = width.length;
  const { start, list } = childrenOf(sums.tree, length);
  const at = new Float64Array(length).fill(-1);
  const levels: Level[] = [];
  let row: Uint32Array = Uint32Array.of(0);
  at[0] = 0;
  while (row.length) {
    levels.push(makeLevel(row, at, width));
    row = nextRow(row, start, list, at, width);
  }
  return { sums, levels, whole: width[0], start: at, width };
}

function makeLevel(row: Uint32Array, at: Float64Array, width: Float64Array): Level {
  const level = {
    node: row,
    start: new Float64Array(row.length),
    width: new Float64Array(row.length),
  };
  for (let i = 0; i < row.length; i++) {
    level.start[i] = at[row[i]];
    level.width[i] = width[row[i]];
  }
  return level;
}

function nextRow(row: Uint32Array, start: Uint32Array, list: Uint32Array, at: Float64Array,
  width: Float64Array): Uint32Array {
  let size = 0;
  for (let i = 0; i < row.length; i++) size += start[row[i] + 1] - start[row[i]];
  const next = new Uint32Array(size);
  let filled = 0;
  for (let i = 0; i < row.length; i++) {
    const parent = row[i];
    const first = filled;
    for (let k = start[parent]; k < start[parent + 1]; k++)
      if (width[list[k]] > 0) next[filled++] = list[k];
    if (filled - first > 1) sortByWidth(next, first, filled, width);
    let x = at[parent];
    for (let k = first; k < filled; k++) {
      at[next[k]] = x;
      x += width[next[k]];
    }
  }
  return next.subarray(0, filled);
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
  const level = layout.levels[depth];
  if (!level) return -1;
  const i = firstAfter(level, x);
  return i < level.node.length && level.start[i] <= x ? level.node[i] : -1;
}
