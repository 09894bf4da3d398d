// Where memory was asked for: sums of a heap event by the function at the inner end of the stack.

import { Kind, type Recording } from './recording.ts';
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

/** "file:line" of the innermost place of a stack whose function is such; '' if there is none. */
function placeIn(r: Recording, stack: number, such: (symbol: number) => boolean): string {
  for (let at = stack; at; at = r.stackParent.data[at]) {
    const frame = r.stackFrame.data[at];
    const first = r.frameFirst.data[frame];
    for (let step = first + r.frameSteps.data[frame] - 1; step >= first; step--) {
      const symbol = r.stepSymbol.data[step];
      if (such(symbol)) return r.placeOf(symbol, r.stepLine.data[step]);
    }
  }
  return '';
}

/** Apart by source line; where that of native code is not known, by the line of Python that led there. */
export function sites(tree: CallTree, choice: Choice): Site[] {
  const r = tree.recording;
  const rows = new Map<string, Site & { heaviest: number }>();
  const python = (symbol: number) => r.kindOf(symbol) === Kind.Python;
  forEachRow(r, choice, (stack, _cut, _event, _thread, count, value) => {
    if (!value && !count) return;
    const node = tree.asker(tree.nodeOf(stack));
    const symbol = tree.symbol.data[node];
    const place = placeIn(r, stack, (other) => other === symbol) || placeIn(r, stack, python);
    const key = `${symbol}:${place}`;
    let site = rows.get(key);
    if (!site) {
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
