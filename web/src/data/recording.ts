// A recording as the page holds it: who ran, what code there is, sums by stack and over time.
// Whole documents and deltas go the same way; everything refers to everything by number.

import type { CurveHead, Doc, Head } from './decode.ts';
import { floats, words } from './growing.ts';
import { spansOf, type SpanSet } from './spans.ts';

export const enum Kind {
  Elf,
  Kernel,
  Vdso,
  Jit,
  Python,
  Unknown,
  Span,
}

export interface Curve extends CurveHead {
  times: number[];
  values: number[];
}

/** Sums in columns: `bucket` only of rows over time. */
class Rows {
  event = words();
  thread = words();
  stack = words();
  count = floats();
  value = floats();
  bucket = words();

  get length(): number {
    return this.event.length;
  }

  add(doc: Doc, prefix: string): void {
    const event = doc.words(`${prefix}.event`);
    const count = doc.column(`${prefix}.count`);
    const value = doc.column(`${prefix}.value`);
    const periods = Float64Array.from(doc.head.events, (e) => e.period);
    for (let i = 0; i < value.length; i++) value[i] += count[i] * periods[event[i]];
    this.event.append(event);
    this.thread.append(doc.words(`${prefix}.thread`));
    this.stack.append(doc.words(`${prefix}.stack`));
    this.count.append(count);
    this.value.append(value);
    this.bucket.append(doc.words(`${prefix}.bucket`));
  }
}

export class Recording {
  head!: Head;
  strings: string[] = [];
  moduleName: string[] = [];
  modulePath: string[] = [];
  moduleNote: string[] = [];
  moduleKind: number[] = [];

  symbolName = words();
  symbolModule = words(); // number + 1
  symbolFile = words();
  symbolLine = words();
  symbolNameless = words();
  /** Of a live recording alone: 1 leads from one Python frame to the next, 2 allocates for others. */
  symbolRole = words();

  frameFirst = words();
  frameSteps = words();
  stepSymbol = words();
  stepLine = words();

  stackParent = words();
  stackFrame = words();

  /** Of the whole recording; `code` must have been called. */
  cells = new Rows();
  times = new Rows();
  /** Rows of time that were folded up to an ancestor have the lowest bit of `stack` set. */
  width = 1;
  curves: Curve[] = [];

  /** Frames that had names before got others: trees must be built anew. */
  renamed = 0;
  sequence = 0;
  private pending: Doc | null = null;
  private spanned: Doc | null = null;
  private read: SpanSet | null = null;

  apply(doc: Doc): void {
    const { head } = doc;
    const { tables, sources } = this.head ?? {};
    this.head = head;
    head.tables ??= tables;
    head.sources ??= sources;
    this.sequence = head.sequence;
    this.takeNames(doc);
    this.takeTimes(doc);
    this.takeCurves(doc);
    this.code();
    this.pending = doc;
    if (head.delta) this.code();
    else this.spanned = head.spans && !head.meta.live ? doc : null;
  }

  /** Spans that the document itself holds: those of a live recording are asked for. */
  spans(): SpanSet | null {
    if (this.spanned) this.read = spansOf(this.spanned, this.spanned.head.spans!);
    this.spanned = null;
    return this.read;
  }

  /** Frames, stacks and their sums are the large part: they are read when a view first needs them. */
  code(): void {
    const doc = this.pending;
    if (!doc || doc.waits()) return;
    this.pending = null;
    this.takeFrames(doc);
    this.takeStacks(doc);
    this.cells.add(doc, 'cell');
  }

  symbolText(symbol: number): string {
    return this.strings[this.symbolName.data[symbol]] ?? '';
  }

  /** Number of the symbol's module, or -1. */
  moduleOf(symbol: number): number {
    return this.symbolModule.data[symbol] - 1;
  }

  kindOf(symbol: number): Kind {
    const module = this.moduleOf(symbol);
    return module < 0 ? Kind.Unknown : this.moduleKind[module];
  }

  /** "src/app.c:12" or "". */
  placeOf(symbol: number, line = 0): string {
    const file = this.strings[this.symbolFile.data[symbol]] ?? '';
    const at = line || this.symbolLine.data[symbol];
    return file && at ? `${file}:${at}` : file;
  }

  /** The text of a source line, if the document has it. */
  sourceOf(file: string, line: number): string | undefined {
    const sources = this.head.sources;
    if (!sources || !Object.hasOwn(sources, file)) return undefined;
    for (const [first, ...lines] of sources[file]) if (line >= first && line < first + lines.length) return lines[line - first];
    return undefined;
  }

  private takeNames(doc: Doc): void {
    const { from, strings } = doc.head;
    for (let i = 0; i < strings.length; i++) this.strings[from.strings + i] = strings[i];
    const text = (column: string) => Array.from(doc.words(column), (s) => this.strings[s] ?? '');
    const put = (to: unknown[], values: unknown[]) => {
      for (let i = 0; i < values.length; i++) to[from.modules + i] = values[i];
    };
    put(this.moduleName, text('module.name'));
    put(this.modulePath, text('module.path'));
    put(this.moduleNote, text('module.note'));
    put(this.moduleKind, Array.from(doc.words('module.kind')));
    this.symbolName.putAt(from.symbols, doc.words('symbol.name'));
    this.symbolModule.putAt(from.symbols, doc.words('symbol.module'));
    this.symbolFile.putAt(from.symbols, doc.words('symbol.file'));
    this.symbolLine.putAt(from.symbols, doc.words('symbol.line'));
    this.symbolNameless.putAt(from.symbols, doc.words('symbol.nameless'));
    this.symbolRole.putAt(from.symbols, doc.words('symbol.role'));
  }

  private takeFrames(doc: Doc): void {
    const at = doc.words('frame.at');
    const steps = doc.words('frame.steps');
    let first = this.stepSymbol.length;
    this.stepSymbol.append(doc.words('step.symbol'));
    this.stepLine.append(doc.words('step.line'));
    const known = this.frameFirst.length;
    const length = at.reduce((most, frame) => Math.max(most, frame + 1), known);
    for (const column of [this.frameFirst, this.frameSteps]) {
      column.reserve(length);
      column.length = length;
    }
    for (let i = 0; i < at.length; i++) {
      if (at[i] < known) this.renamed++;
      this.frameFirst.data[at[i]] = first;
      this.frameSteps.data[at[i]] = steps[i];
      first += steps[i];
    }
  }

  private takeStacks(doc: Doc): void {
    const { from } = doc.head;
    const up = doc.words('stack.up');
    for (let i = 0; i < up.length; i++) up[i] = Math.max(0, from.stacks + i - up[i]);
    const frame = doc.words('stack.frame');
    if (from.stacks) {
      this.stackParent.putAt(from.stacks, up);
      this.stackFrame.putAt(from.stacks, frame);
    } else {
      this.stackParent.append(up);
      this.stackFrame.append(frame);
    }
  }

  private takeTimes(doc: Doc): void {
    const width = doc.head.buckets.width;
    const before = this.times.length;
    const wider = Math.max(width, before ? this.width : 0);
    const { bucket } = this.times;
    if (before && wider > this.width)
      for (let i = 0; i < before; i++)
        bucket.data[i] = Math.floor((bucket.data[i] * this.width) / wider);
    this.times.add(doc, 'time');
    if (wider > width)
      for (let i = before; i < this.times.length; i++)
        bucket.data[i] = Math.floor((bucket.data[i] * width) / wider);
    this.width = wider;
  }

  private takeCurves(doc: Doc): void {
    const times = doc.column('curve.time');
    const values = doc.column('curve.value');
    let at = 0;
    for (const head of doc.head.curves) {
      let curve = this.curves.find((c) => c.number === head.number);
      if (!curve) this.curves.push((curve = { ...head, times: [], values: [] }));
      for (let i = 0; i < head.points; i++, at++) {
        curve.times.push(times[at]);
        curve.values.push(values[at]);
      }
    }
  }
}
