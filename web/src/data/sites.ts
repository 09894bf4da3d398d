// Where memory was asked for: sums of a heap event by the function at the inner end of the stack.

import { Kind } from './recording.ts';
import { forEachRow, type Choice } from './sums.ts';
import { CallTree } from './tree.ts';

export interface Site {
  node: number; // of the heaviest stack
  symbol: number;
  name: string;
  place: string;
  bytes: number;
  count: number;
  stacks: number;
}

export function sites(tree: CallTree, choice: Choice): Site[] {
  const r = tree.recording;
  const rows = new Map<string, Site & { heaviest: number }>();
  forEachRow(r, choice, (stack, _cut, _event, _thread, count, value) => {
    if (!value && !count) return;
    const node = tree.asker(tree.nodeOf(stack));
    const symbol = tree.symbol.data[node];
    const frame = r.stackFrame.data[stack];
    const line = stack ? r.stepLine.data[r.frameFirst.data[frame] + r.frameSteps.data[frame] - 1] : 0;
    const key = `${symbol}:${line}`;
    let site = rows.get(key);
    if (!site) {
      const place = symbol < r.symbolName.length ? r.placeOf(symbol, line) : '';
      site = { node, symbol, name: tree.name(node), place, bytes: 0, count: 0, stacks: 0, heaviest: 0 };
      rows.set(key, site);
    }
    site.bytes += value;
    site.count += count;
    site.stacks++;
    if (value > site.heaviest) {
      site.heaviest = value;
      site.node = node;
    }
  });
  return [...rows.values()].sort((a, b) => b.bytes - a.bytes);
}

/** "inner ← caller ← …", the first few; of an interpreter's own way to the Python code that asked, only the inner end. */
export function callersText(tree: CallTree, node: number, most: number): string {
  const r = tree.recording;
  const path = tree.path(node).reverse();
  const first = path.findIndex((n) => tree.symbol.data[n] < r.symbolName.length && r.kindOf(tree.symbol.data[n]) === Kind.Python);
  const names = path.slice(1).map((n) => tree.name(n));
  if (first > 3) names.splice(1, first - 2, '…');
  if (names.length > most) names.splice(most, names.length, '…');
  return names.join(' ← ');
}
