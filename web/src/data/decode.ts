// The page's document, from bytes: a head in JSON and columns of numbers. docs/PAGE.md draws it.

export interface EventHead {
  name: string;
  unit: 'ns' | 'bytes' | 'count';
  period: number;
  samples: number;
  value: number;
}

export interface ProcessHead {
  pid: number;
  parent: number;
  name: string;
  arguments: string;
  exe: string;
  programs: number;
  start: number;
  max_rss: number;
  ended: boolean;
  end?: number;
  status?: number;
  signal?: string;
}

export interface ThreadHead {
  process: number;
  tid: number;
  name: string;
  start: number;
  end?: number;
  cpu: number;
}

export interface HeapHead {
  process: number;
  time: number;
  peak: number;
  peak_time: number;
  live: number;
  live_blocks: number;
  allocations: number;
  frees: number;
  lost: number;
}

export interface CurveHead {
  number: number;
  name: string;
  unit: 'ns' | 'bytes' | 'count';
  process: number;
  thread: number;
  points: number;
}

export interface TableColumn {
  id: string;
  heading: string;
  kind: string;
}

export interface TableSection {
  kind: string;
  title: string;
  columns?: TableColumn[];
  rows?: Record<string, unknown>[];
  facts?: Record<string, unknown>;
}

export interface TableView {
  view: string;
  title: string;
  sections: Record<string, TableSection>;
}

/** Tables that the page takes as `sonde report --json` has them. */
export type TableName = 'leaks' | 'peaks' | 'heap' | 'ownership' | 'held' | 'lines';

export interface SpanFacts {
  from: number;
  to: number;
  least: number; // what is shorter may stand together with others
  total: number;
  threads: number[]; // that have any
}

export interface Head {
  version: number;
  delta: boolean;
  sequence: number;
  from: { strings: number; modules: number; symbols: number; stacks: number };
  meta: {
    title: string;
    live: boolean;
    complete: boolean;
    duration: number;
    date: number;
    facts: Record<string, string>;
  };
  events: EventHead[];
  processes: ProcessHead[];
  threads: ThreadHead[];
  heaps: HeapHead[];
  /** Event, thread, count and value of all that was counted. */
  sums?: [number, number, number, number][];
  losses: { event: number; thread: number; reason: string; count: number }[];
  lost: number;
  cost: {
    collector_cpu: number;
    collector_rss: number;
    target_extra: number;
    stacks_whole: number;
    stacks_cut: number;
    bytes_written: number;
  };
  notes: { warning: boolean; text: string }[];
  marks?: { time: number; text: string }[];
  spans?: SpanFacts;
  curves: CurveHead[];
  tables?: Partial<Record<TableName, TableView>>;
  /** By file: runs of lines, each with the number of its first. */
  sources?: Record<string, [number, ...string[]][]>;
  buckets: { width: number; cut: boolean };
  strings: string[];
  columns: { name: string; coding: 'plain' | 'signed' | 'delta'; rows: number; bytes: number; later?: boolean }[];
}

export interface Doc {
  head: Head;
  /** A column that the document does not have is empty. */
  column(name: string): Float64Array;
  /** The same for numbers that fit into 32 bits. */
  words(name: string): Uint32Array;
  /** Are there columns that come later, and have not come? */
  waits(): boolean;
  /** They have come: their bytes, one column after the other. */
  rest(bytes: Uint8Array): void;
}

const MAGIC = 0x31445053; // "SPD1"

function unzigzag(v: number): number {
  if (v < 0x80000000) return (v >>> 1) ^ -(v & 1);
  const half = Math.floor(v / 2);
  return v % 2 ? -half - 1 : half;
}

const CUT = 'a column of the document is cut short';

/** One column into `out`; throws if the bytes do not hold that many rows. */
export function decodeInto<T extends Uint32Array | Float64Array>(bytes: Uint8Array, coding: string, out: T): T {
  const rows = out.length;
  if (rows > bytes.length) throw new Error(CUT);
  const delta = coding === 'delta';
  const signed = delta || coding === 'signed';
  let at = 0;
  let last = 0;
  for (let i = 0; i < rows; i++) {
    let v = bytes[at++];
    if (v >= 0x80) {
      v &= 0x7f;
      let scale = 0x80;
      let byte;
      do {
        if (at >= bytes.length) throw new Error(CUT);
        byte = bytes[at++];
        v += (byte & 0x7f) * scale;
        scale *= 0x80;
      } while (byte >= 0x80);
    }
    if (signed) v = unzigzag(v);
    out[i] = delta ? (last += v) : v;
  }
  if (at > bytes.length) throw new Error(CUT);
  return out;
}

export function decodeColumn(bytes: Uint8Array, rows: number, coding: string): Float64Array {
  if (rows > bytes.length) throw new Error(CUT);
  return decodeInto(bytes, coding, new Float64Array(rows));
}

export function decode(bytes: Uint8Array): Doc {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 8 || view.getUint32(0, true) !== MAGIC)
    throw new Error('this is no document of a page');
  const length = view.getUint32(4, true);
  if (8 + length > bytes.length) throw new Error('the document is cut short');
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length))) as Head;
  if (head.version !== 1) throw new Error(`the document has version ${head.version}, not 1`);
  head.strings ??= [];
  const places = new Map<string, { bytes: Uint8Array; rows: number; coding: string }>();
  let waiting = head.columns.some((c) => c.later);
  const take = (from: Uint8Array, start: number, later: boolean) => {
    let at = start;
    for (const c of head.columns) {
      if (!!c.later !== later) continue;
      if (at + c.bytes > from.length) throw new Error('the document is cut short');
      places.set(c.name, { bytes: from.subarray(at, at + c.bytes), rows: c.rows, coding: c.coding });
      at += c.bytes;
    }
  };
  take(bytes, 8 + length, false);
  return {
    head,
    waits: () => waiting,
    rest(more) {
      take(more, 0, true);
      waiting = false;
    },
    column(name) {
      const place = places.get(name);
      return place ? decodeColumn(place.bytes, place.rows, place.coding) : new Float64Array(0);
    },
    words(name) {
      const place = places.get(name);
      if (!place) return new Uint32Array(0);
      if (place.rows > place.bytes.length) throw new Error(CUT);
      return decodeInto(place.bytes, place.coding, new Uint32Array(place.rows));
    },
  };
}

export function fromBase64(text: string): Uint8Array {
  const native = (Uint8Array as unknown as { fromBase64?: (t: string) => Uint8Array }).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const binary = atob(text);
  const out = new Uint8Array(binary.length);
  for (let i = 0; i < out.length; i++) out[i] = binary.charCodeAt(i);
  return out;
}

export async function inflate(bytes: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([bytes as BlobPart]).stream();
  const inflated = stream.pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(inflated).arrayBuffer());
}
