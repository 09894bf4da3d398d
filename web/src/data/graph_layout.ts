// Where the boxes of a call graph stand: in columns from callers to callees.

import type { Node } from './graph.ts';
import type { Edge } from './sandwich.ts';

export interface Box extends Node {
  column: number;
  x: number;
  y: number;
}

export interface Arrow extends Edge {
  path: string;
  back: boolean; // recursion
  aside: boolean; // to one that stands no further to the right
}

export interface Drawing {
  boxes: Box[];
  arrows: Arrow[];
  width: number;
  height: number;
}

export const BOX_HEIGHT = 46;
export const BOX_WIDTH = 208;
const COLUMN = BOX_WIDTH + 52;
const ROW = BOX_HEIGHT + 16;
const MARGIN = 12;

export function place(nodes: Node[], edges: Edge[], depth: Map<number, number>): Drawing {
  const back = recursion(nodes, edges, depth);
  const forth = edges.filter((e) => !back.has(e));
  const boxes = stand(nodes, columns(nodes, forth), forth);
  const at = new Map(boxes.map((b) => [b.id, b]));
  return {
    boxes,
    arrows: edges.map((e) => arrow(e, at.get(e.from)!, at.get(e.to)!, back.has(e))),
    width: Math.max(0, ...boxes.map((b) => b.x + BOX_WIDTH)) + MARGIN,
    height: Math.max(0, ...boxes.map((b) => b.y + BOX_HEIGHT)) + MARGIN,
  };
}

/** Calls back to who is being called: without them there is an order from callers to callees. */
function recursion(nodes: Node[], edges: Edge[], depth: Map<number, number>): Set<Edge> {
  const calls = new Map<number, Edge[]>();
  for (const e of edges) calls.set(e.from, [...(calls.get(e.from) ?? []), e]);
  const called = new Set(edges.map((e) => e.to));
  const far = (n: Node) => (called.has(n.id) ? 1e6 : 0) + (depth.get(n.row.symbol) ?? 0);
  const open = new Set<number>();
  const done = new Set<number>();
  const back = new Set<Edge>();
  const visit = (id: number) => {
    if (done.has(id)) return;
    open.add(id);
    done.add(id);
    for (const e of calls.get(id) ?? []) {
      if (open.has(e.to)) back.add(e);
      else visit(e.to);
    }
    open.delete(id);
  };
  for (const n of [...nodes].sort((a, b) => far(a) - far(b))) visit(n.id);
  return back;
}

/** Each beside the caller that it has most from, since behind the last of all callers lines get long. */
function columns(nodes: Node[], forth: Edge[]): Map<number, number> {
  const caller = new Map<number, number>();
  for (const e of forth) if (!caller.has(e.to)) caller.set(e.to, e.from); // the heaviest come first
  const column = new Map<number, number>();
  const find = (id: number): number => {
    const known = column.get(id);
    if (known !== undefined) return known;
    const at = caller.has(id) ? find(caller.get(id)!) + 1 : 0;
    column.set(id, at);
    return at;
  };
  for (const n of nodes) find(n.id);
  // Who is called by nobody stands just before what it calls.
  for (const { id } of nodes) {
    const to = forth.filter((e) => e.from === id).map((e) => column.get(e.to)!);
    if (!caller.has(id) && to.length) column.set(id, Math.max(0, Math.min(...to) - 1));
  }
  return column;
}

/** Within a column near what it is called by, heavy ones first where that leaves a choice. */
function stand(nodes: Node[], column: Map<number, number>, edges: Edge[]): Box[] {
  const byColumn: Node[][] = [];
  for (const n of nodes) (byColumn[column.get(n.id)!] ??= []).push(n);
  const middle = new Map<number, number>();
  const boxes: Box[] = [];
  byColumn.forEach((list, c) => {
    const wish = new Map(list.map((n) => [n.id, callersMiddle(n, edges, middle)]));
    list.sort((a, b) => wish.get(a.id)! - wish.get(b.id)! || b.row.total - a.row.total);
    let next = MARGIN;
    for (const n of list) {
      const y = Math.max(next, wish.get(n.id)! - ((list.length - 1) * ROW) / 2);
      middle.set(n.id, y);
      next = y + ROW;
      boxes.push({ ...n, column: c, x: MARGIN + c * COLUMN, y });
    }
  });
  return boxes;
}

function callersMiddle(node: Node, edges: Edge[], middle: Map<number, number>): number {
  let sum = 0;
  let weight = 0;
  for (const e of edges)
    if (e.to === node.id && middle.has(e.from)) {
      sum += middle.get(e.from)! * e.value;
      weight += e.value;
    }
  return weight ? sum / weight : 0;
}

function arrow(e: Edge, from: Box, to: Box, back: boolean): Arrow {
  const x0 = from.x + BOX_WIDTH;
  const y0 = from.y + BOX_HEIGHT / 2;
  const x1 = to.x;
  const y1 = to.y + BOX_HEIGHT / 2;
  const bend = x1 <= x0 ? 46 : Math.max(26, (x1 - x0) / 2);
  return { ...e, back, aside: x1 <= x0, path: `M${x0},${y0} C${x0 + bend},${y0} ${x1 - bend},${y1} ${x1},${y1}` };
}
