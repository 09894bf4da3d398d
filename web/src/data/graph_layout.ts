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
const LANE = 22; // of a call that passes between boxes
const MARGIN = 12;
const MUCH = 0.5; // of what the heaviest caller gives

export function place(nodes: Node[], edges: Edge[], depth: Map<number, number>): Drawing {
  const back = recursion(nodes, edges, depth);
  const forth = edges.filter((e) => !back.has(e));
  const { boxes, lanes } = stand(nodes, columns(nodes, forth), forth);
  const at = new Map(boxes.map((b) => [b.id, b]));
  return {
    boxes,
    arrows: edges.map((e) => arrow(e, at.get(e.from)!, at.get(e.to)!, back.has(e), lanes.get(e) ?? [])),
    width: Math.max(0, ...boxes.map((b) => b.x + BOX_WIDTH)) + MARGIN,
    height: Math.max(0, ...boxes.map((b) => b.y + BOX_HEIGHT), ...[...lanes.values()].flat().map((l) => l.y)) + MARGIN,
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

/** Each behind the callers that it has much from; behind the last of all callers lines would get long. */
function columns(nodes: Node[], forth: Edge[]): Map<number, number> {
  const callers = new Map<number, Edge[]>();
  for (const e of forth) callers.set(e.to, [...(callers.get(e.to) ?? []), e]);
  const column = new Map<number, number>();
  const find = (id: number): number => {
    const known = column.get(id);
    if (known !== undefined) return known;
    const list = callers.get(id) ?? [];
    const most = Math.max(...list.map((e) => e.value));
    const at = Math.max(-1, ...list.filter((e) => e.value >= most * MUCH).map((e) => find(e.from))) + 1;
    column.set(id, at);
    return at;
  };
  for (const n of nodes) find(n.id);
  // Who is called by nobody stands just before what it calls.
  for (const { id } of nodes) {
    const to = forth.filter((e) => e.from === id).map((e) => column.get(e.to)!);
    if (!callers.has(id) && to.length) column.set(id, Math.max(0, Math.min(...to) - 1));
  }
  return column;
}

/** What stands in a column: a box, or a call that passes it on its way to a later one. */
interface Place {
  node?: Node;
  edge?: Edge;
  weight: number;
}

type Lane = { x: number; y: number };

function placesOf(nodes: Node[], column: Map<number, number>, edges: Edge[]): Place[][] {
  const out: Place[][] = [];
  for (const n of nodes) (out[column.get(n.id)!] ??= []).push({ node: n, weight: n.row.total });
  for (const e of edges)
    for (let c = column.get(e.from)! + 1; c < column.get(e.to)!; c++) (out[c] ??= []).push({ edge: e, weight: e.value });
  return out;
}

/** Within a column near what it is called by, heavy ones first where that leaves a choice. */
function stand(nodes: Node[], column: Map<number, number>, edges: Edge[]): { boxes: Box[]; lanes: Map<Edge, Lane[]> } {
  const middle = new Map<number, number>(); // of boxes
  const lanes = new Map<Edge, Lane[]>();
  const boxes: Box[] = [];
  const source = (e: Edge) => lanes.get(e)?.at(-1)?.y ?? middle.get(e.from);
  placesOf(nodes, column, edges).forEach((list, c) => {
    const wish = new Map(list.map((p) => [p, wishOf(p, edges, source)]));
    list.sort((a, b) => wish.get(a)! - wish.get(b)! || b.weight - a.weight);
    const tall = list.reduce((sum, p) => sum + (p.node ? ROW : LANE), 0);
    let next = MARGIN;
    for (const p of list) {
      const top = Math.max(next, wish.get(p)! - tall / 2);
      const x = MARGIN + c * COLUMN;
      next = top + (p.node ? ROW : LANE);
      if (p.node) {
        middle.set(p.node.id, top + BOX_HEIGHT / 2);
        boxes.push({ ...p.node, column: c, x, y: top });
      } else lanes.set(p.edge!, [...(lanes.get(p.edge!) ?? []), { x, y: top + LANE / 2 - 4 }]);
    }
  });
  return { boxes, lanes };
}

function wishOf(p: Place, edges: Edge[], source: (e: Edge) => number | undefined): number {
  if (p.edge) return source(p.edge) ?? 0;
  let sum = 0;
  let weight = 0;
  for (const e of edges) {
    const y = e.to === p.node!.id ? source(e) : undefined;
    if (y === undefined) continue;
    sum += y * e.value;
    weight += e.value;
  }
  return weight ? sum / weight : 0;
}

function arrow(e: Edge, from: Box, to: Box, back: boolean, lanes: Lane[]): Arrow {
  let [x, y] = [from.x + BOX_WIDTH, from.y + BOX_HEIGHT / 2];
  const aside = to.x <= x;
  let path = `M${x},${y}`;
  const curve = (x1: number, y1: number) => {
    const bend = x1 <= x ? 46 : Math.max(26, (x1 - x) / 2);
    path += ` C${x + bend},${y} ${x1 - bend},${y1} ${x1},${y1}`;
  };
  for (const lane of aside ? [] : lanes) {
    curve(lane.x, lane.y);
    [x, y] = [lane.x + BOX_WIDTH, lane.y];
    path += ` H${x}`;
  }
  curve(to.x, to.y + BOX_HEIGHT / 2);
  return { ...e, back, aside, path };
}
