// Two recordings in one tree: the other's nodes are put where they belong by the names of their
// functions, so both sides of a box are known.

import type { Recording } from './recording.ts';
import { addUp, type Sums } from './sums.ts';
import { CallTree, isWait, NodeTree } from './tree.ts';

export interface Comparison {
  after: Sums; // of this recording, longer than before: nodes of the other were added
  before: Sums; // by the same nodes
  width: Float64Array; // of a box: its own part is the larger side
}

function symbolKey(r: Recording, symbol: number): string {
  const module = r.moduleOf(symbol);
  return `${r.symbolText(symbol)}\0${module < 0 ? '' : r.moduleName[module]}`;
}

/** Numbers in `r` of the other's symbols; those it does not have are added to it. */
function translate(r: Recording, other: Recording): Map<number, number> {
  const known = new Map<string, number>();
  for (let i = r.symbolName.length; i-- > 0; ) known.set(symbolKey(r, i), i);
  const out = new Map<number, number>();
  for (let i = 0; i < other.symbolName.length; i++) {
    const key = symbolKey(other, i);
    let symbol = known.get(key);
    if (symbol === undefined) {
      symbol = adopt(r, other, i);
      known.set(key, symbol);
    }
    out.set(i, symbol);
  }
  return out;
}

function adopt(r: Recording, other: Recording, symbol: number): number {
  const string = (text: string) => r.strings.push(text) - 1;
  const module = other.moduleOf(symbol);
  let here = module < 0 ? -1 : r.modulePath.indexOf(other.modulePath[module]);
  if (module >= 0 && here < 0) {
    here = r.modulePath.push(other.modulePath[module]) - 1;
    r.moduleName.push(other.moduleName[module]);
    r.moduleNote.push(other.moduleNote[module]);
    r.moduleKind.push(other.moduleKind[module]);
  }
  r.symbolModule.push(here + 1);
  r.symbolFile.push(string(other.strings[other.symbolFile.data[symbol]]));
  r.symbolLine.push(other.symbolLine.data[symbol]);
  r.symbolNameless.push(other.symbolNameless.data[symbol]);
  return r.symbolName.push(string(other.symbolText(symbol)));
}

const ABOUT_EQUAL = 0.05;

/** Are totals and durations about the same, so that values compare as they were recorded? As `sonde diff` decides. */
export function alike(after: Sums, before: Sums, here: Recording, there: Recording): boolean {
  const equal = (a: number, b: number) => Math.abs(a - b) <= ABOUT_EQUAL * Math.max(a, b);
  return equal(after.value, before.value) && equal(here.head.meta.duration, there.head.meta.duration);
}

export class Comparer {
  private readonly symbols: Map<number, number>;

  constructor(private readonly tree: CallTree, private readonly other: CallTree) {
    this.symbols = translate(tree.recording, other.recording);
  }

  /** Values of before are multiplied by `scale`. */
  compare(after: Sums, before: Sums, scale = 1): Comparison {
    const map = this.place(before.tree);
    const n = this.tree.length;
    const widen = (a: Float64Array) => {
      const out = new Float64Array(n);
      out.set(a);
      return out;
    };
    const self = new Float64Array(n);
    const count = new Float64Array(n);
    for (let i = 0; i < before.self.length; i++) {
      self[map[i]] += before.self[i] * scale;
      count[map[i]] += before.selfCount[i];
    }
    const now = addUp(this.tree, widen(after.self), widen(after.selfCount));
    const then = addUp(this.tree, self, count);
    const width = new Float64Array(n);
    for (let i = n - 1; i >= 0; i--) {
      width[i] += Math.max(now.self[i], then.self[i]);
      if (i) width[this.tree.parent.data[i]] += width[i];
    }
    return { after: now, before: then, width };
  }

  private place(tree: NodeTree): Uint32Array {
    const map = new Uint32Array(tree.length);
    for (let i = 1; i < tree.length; i++) {
      const symbol = tree.symbol.data[i];
      const here = this.symbols.get(symbol) ?? (isWait(symbol) ? this.wait(symbol) : symbol);
      map[i] = this.tree.child(map[tree.parent.data[i]], here, tree.inlined.data[i]);
    }
    return map;
  }

  /** Events are numbered by recording; the reasons of waits go by name. */
  private wait(symbol: number): number {
    const name = this.other.symbolName(symbol);
    const event = this.tree.recording.head.events.findIndex((e) => e.name === name);
    return event < 0 ? symbol : this.tree.symbol.data[this.tree.waiting(0, event)];
  }
}
