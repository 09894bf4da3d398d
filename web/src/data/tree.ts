// The merged call tree of a recording: nodes by (parent, symbol). Built once from the stacks,
// extended as more come; what is chosen only changes the sums. A parent's number is smaller than
// its children's, so sums are one pass backwards. Node 0 is the root.

import { bytes, words } from './growing.ts';
import { Kind, type Recording } from './recording.ts';

export const NONE = 0xffffffff;

/** Symbols that are no function: numbered downwards from here. */
export const NO_STACK = 0xfffffffe;
const SMALLER = 0xfffffffd;
const WAIT = 0xfffffffc; // minus the event's number

export function isWait(symbol: number): boolean {
  return symbol <= WAIT && symbol > WAIT - 4096;
}

export function waitEvent(symbol: number): number {
  return WAIT - symbol;
}

/** Nodes by (parent, symbol); node 0 is the root. */
export class NodeTree {
  parent = words(1024);
  symbol = words(1024);
  depth = words(1024);
  inlined = bytes(1024);
  deepest = 0;
  /** Counts up when nodes lose their numbers. */
  generation = 0;
  private slots = new Uint32Array(1 << 12);

  constructor(readonly recording: Recording, private readonly root = NONE) {
    this.reset();
  }

  get length(): number {
    return this.parent.length;
  }

  name(node: number): string {
    return this.symbolName(this.symbol.data[node]);
  }

  symbolName(symbol: number): string {
    if (symbol === NONE) return 'all';
    if (symbol === NO_STACK) return '[no stack]';
    if (symbol === SMALLER) return '[smaller calls]';
    if (isWait(symbol)) return this.recording.head.events[waitEvent(symbol)]?.name ?? 'waiting';
    return this.recording.symbolText(symbol);
  }

  /** The child of `parent` with that symbol, made if it is new. */
  child(parent: number, symbol: number, inlined = 0): number {
    if (this.parent.length * 2 >= this.slots.length) this.grow();
    const mask = this.slots.length - 1;
    let at = hash(parent, symbol) & mask;
    for (let found; (found = this.slots[at]); at = (at + 1) & mask) {
      const node = found - 1;
      if (this.parent.data[node] === parent && this.symbol.data[node] === symbol) {
        if (!inlined) this.inlined.data[node] = 0;
        return node;
      }
    }
    const node = this.parent.push(parent);
    const depth = this.depth.data[parent] + 1;
    this.symbol.push(symbol);
    this.inlined.push(inlined);
    this.depth.push(depth);
    if (depth > this.deepest) this.deepest = depth;
    this.slots[at] = node + 1;
    return node;
  }

  /** From the outermost function to the node itself. */
  path(node: number): number[] {
    const out: number[] = [];
    for (let n = node; n; n = this.parent.data[n]) out.push(n);
    return out.reverse();
  }

  protected reset(): void {
    for (const column of [this.parent, this.symbol, this.depth, this.inlined]) column.clear();
    this.slots.fill(0);
    this.parent.push(0);
    this.symbol.push(this.root);
    this.depth.push(0);
    this.inlined.push(0);
    this.deepest = 0;
    this.generation++;
  }

  /** Makes room for so many nodes at once. */
  protected expect(nodes: number): void {
    for (const column of [this.parent, this.symbol, this.depth, this.inlined]) column.reserve(nodes);
    let slots = this.slots.length;
    while (slots < nodes * 2) slots *= 2;
    if (slots > this.slots.length) this.grow(slots);
  }

  private grow(slots = this.slots.length * 4): void {
    const larger = new Uint32Array(slots);
    const mask = larger.length - 1;
    for (let node = 1; node < this.parent.length; node++) {
      let at = hash(this.parent.data[node], this.symbol.data[node]) & mask;
      while (larger[at]) at = (at + 1) & mask;
      larger[at] = node + 1;
    }
    this.slots = larger;
  }
}

/** The tree of all stacks of a recording. */
export class CallTree extends NodeTree {
  stackNode = words(1024);
  /** Of live recordings, by stack: where what it calls stands, and whether Python is on it. */
  private callsAt = words();
  private inPython = bytes();
  private renamed = 0;

  constructor(recording: Recording) {
    super(recording);
    recording.code();
    this.renamed = recording.renamed;
    this.update();
  }

  /** Takes in stacks that came since. */
  update(): void {
    const r = this.recording;
    r.code();
    const nodes = this.stackNode;
    if (this.renamed !== r.renamed) {
      this.reset();
      for (const column of [nodes, this.callsAt, this.inPython]) column.clear();
      this.renamed = r.renamed;
    }
    const total = r.stackParent.length;
    nodes.reserve(total);
    this.expect(total + (total >> 2));
    if (r.symbolRole.length) {
      this.takeHidden(total);
      return;
    }
    for (let i = nodes.length; i < total; i++) {
      nodes.push(i ? this.frame(nodes.data[r.stackParent.data[i]], r.stackFrame.data[i]) : 0);
    }
  }

  /** The same without the interpreter's ways of calling: what such a function calls, its caller calls. */
  private takeHidden(total: number): void {
    const r = this.recording;
    const { stackNode: nodes, callsAt, inPython } = this;
    for (let i = nodes.length; i < total; i++) {
      const parent = i ? r.stackParent.data[i] : 0;
      const from = i ? callsAt.data[parent] : 0;
      const under = i ? inPython.data[parent] : 0;
      const frame = r.stackFrame.data[i];
      const node = i ? this.frame(from, frame) : 0;
      nodes.push(node);
      callsAt.push(i && under && this.leads(frame) ? from : node);
      inPython.push(under || (i && this.isPython(frame)) ? 1 : 0);
    }
  }

  private leads(frame: number): boolean {
    const r = this.recording;
    const first = r.frameFirst.data[frame];
    const end = first + r.frameSteps.data[frame];
    for (let k = first; k < end; k++) if (r.symbolRole.data[r.stepSymbol.data[k]] !== 1) return false;
    return end > first;
  }

  private isPython(frame: number): boolean {
    const r = this.recording;
    return r.frameSteps.data[frame] > 0 && r.kindOf(r.stepSymbol.data[r.frameFirst.data[frame]]) === Kind.Python;
  }

  private frame(from: number, frame: number): number {
    const r = this.recording;
    const first = r.frameFirst.data[frame];
    const end = first + r.frameSteps.data[frame];
    let node = from;
    for (let k = first; k < end; k++) node = this.step(node, r.stepSymbol.data[k], k > first ? 1 : 0);
    return node;
  }

  /** Who asked the allocator whose function the node is; the node itself if it is none. */
  asker(node: number): number {
    const role = this.recording.symbolRole.data;
    let at = node;
    while (at && role[this.symbol.data[at]] === 2) at = this.parent.data[at];
    return at || node;
  }

  /** Where samples of a stack count. */
  nodeOf(stack: number): number {
    return stack ? this.stackNode.data[stack] : this.child(0, NO_STACK);
  }

  /** Somewhere under a stack, not told where. */
  under(stack: number): number {
    return this.child(this.nodeOf(stack), SMALLER);
  }

  /** The leaf that says what a stack waited for. */
  waiting(node: number, event: number): number {
    return this.child(node, WAIT - event);
  }

  private step(node: number, symbol: number, inlined: number): number {
    // A run of code without names is one box.
    if (node && this.symbol.data[node] === symbol && this.recording.symbolNameless.data[symbol])
      return node;
    return this.child(node, symbol, inlined);
  }
}

function hash(a: number, b: number): number {
  let h = Math.imul(a, 0x9e3779b1) ^ Math.imul(b + 0x7f4a7c15, 0x85ebca6b);
  h ^= h >>> 15;
  h = Math.imul(h, 0x2c1b3c6d);
  return (h ^ (h >>> 13)) >>> 0;
}
