// Where a document comes from: out of the file itself, or from a server that goes on sending.

import { decode, fromBase64, inflate, type Doc, type TableView } from './decode.ts';
import { Server } from './server.ts';
import { spansOf, type SpanSet } from './spans.ts';
import { whileConnected } from './visible.ts';

export type Link = 'file' | 'connecting' | 'live' | 'lost' | 'ended';

export interface Reader {
  /** A whole document: what was there before is void. */
  whole(doc: Doc): void;
  delta(doc: Doc): void;
  /** What the document still waited for has come. */
  rest(): void;
  link(state: Link, text: string): void;
}

type SpanWindow = [from: number, to: number, pixels: number, threads: number[]];

export interface Source {
  readonly live: boolean;
  start(reader: Reader): Promise<void>;
  /** What a command did, as a sentence; only of live sources. */
  control?(command: Record<string, unknown>): Promise<{ ok: boolean; text: string }>;
  /** Address of the recording so far, and in which formats it can be had. */
  download?(format: string): string;
  formats?(): Promise<string[]>;
  /** Spans of a window; sources that hold them all have none of this. */
  spans?(...window: SpanWindow): Promise<SpanSet | null>;
  /** A view as `sonde report --json` has it. */
  view?(name: string, query: Record<string, string>): Promise<TableView>;
  /** Asks for the whole again. */
  refresh?(): Promise<void>;
}

/** The document of that element, and what gives the part that comes later. */
async function embedded(id: string): Promise<{ doc: Doc; rest: () => Promise<void> } | null> {
  const element = document.getElementById(id);
  if (!element) return null;
  const [first, later] = (element.textContent ?? '').split('\n');
  element.textContent = '';
  const doc = decode(await inflate(fromBase64(first)));
  return { doc, rest: async () => (doc.waits() ? doc.rest(await inflate(fromBase64(later ?? ''))) : undefined) };
}

export class EmbeddedSource implements Source {
  readonly live = false;

  static present(): boolean {
    return document.getElementById('data') !== null;
  }

  async start(reader: Reader): Promise<void> {
    const found = await embedded('data');
    if (!found) throw new Error('this file holds no recording');
    reader.whole(found.doc);
    reader.link('file', '');
    // The first view is drawn before the large part is unpacked.
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    performance.mark('first view');
    await found.rest();
    reader.rest();
  }

  /** The recording to compare with, or null. */
  async base(): Promise<Doc | null> {
    const found = await embedded('base');
    await found?.rest();
    return found?.doc ?? null;
  }
}

async function askSpans(server: Server, path: string, [from, to, pixels, threads]: SpanWindow): Promise<SpanSet | null> {
  const query = new URLSearchParams({ from: String(Math.floor(from)), to: String(Math.ceil(to)), pixels: String(pixels), threads: threads.join('.') });
  try {
    const doc = decode(await server.bytes(`${path}?${query}`));
    return spansOf(doc, doc.head.spans!);
  } catch {
    return null; // the link says so
  }
}

/** A recording that a job has kept. */
export class StoredSource implements Source {
  readonly live = false;
  private readonly server = new Server();

  constructor(private readonly path: string) {}

  async start(reader: Reader): Promise<void> {
    reader.whole(decode(await this.server.bytes(`${this.path}/document`)));
    reader.link('file', '');
  }

  spans(...window: SpanWindow): Promise<SpanSet | null> {
    return askSpans(this.server, `${this.path}/spans`, window);
  }
}

const RETRY_FIRST = 500;
const RETRY_MOST = 15000;
const AWAY_LONG = 60000; // ms after which the whole is less than what was missed

export class LiveSource implements Source {
  readonly live = true;
  private reader!: Reader;
  private sequence = 0;
  private events: EventSource | null = null;
  private retry = RETRY_FIRST;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private known = false;
  private ended = false;
  private left = 0; // when it let go of its connection, as nobody looked; 0: it has one
  private readonly server = new Server();

  async start(reader: Reader): Promise<void> {
    this.reader = reader;
    reader.link('connecting', 'Connecting…');
    await this.refresh();
    whileConnected(() => this.resume(), () => this.rest());
  }

  private rest(): void {
    if (this.ended) return;
    this.events?.close();
    clearTimeout(this.timer);
    this.left = Date.now();
  }

  /** Goes on from what was heard last: the server has kept what came since, or says that it has not. */
  private resume(): void {
    if (!this.left) return;
    const away = Date.now() - this.left;
    this.left = 0;
    if (this.known && away < AWAY_LONG) this.listen();
    else void this.refresh();
  }

  private finish(): void {
    this.events?.close();
    this.ended = true;
    this.reader.link('ended', 'The recording is complete.');
  }

  async refresh(): Promise<void> {
    this.events?.close();
    clearTimeout(this.timer);
    try {
      const doc = decode(await this.server.bytes('api/snapshot'));
      this.sequence = doc.head.sequence;
      this.reader.whole(doc);
      this.known = true;
      if (doc.head.meta.complete) this.finish();
      else if (!this.left) this.listen();
    } catch (fault) {
      this.again(fault instanceof Error ? fault.message : 'no answer');
    }
  }

  async control(command: Record<string, unknown>): Promise<{ ok: boolean; text: string }> {
    try {
      const answer = await fetch(this.server.address('api/control'), {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(command),
      });
      const said = await answer.json();
      return { ok: answer.ok && said.ok === true, text: String(said.text ?? said.error ?? '') };
    } catch {
      return { ok: false, text: 'The server did not answer; the command may not have arrived.' };
    }
  }

  download(format: string): string {
    return this.server.address(`api/recording?format=${encodeURIComponent(format)}`);
  }

  async formats(): Promise<string[]> {
    const { formats } = await this.server.json<{ formats?: string }>('api/status');
    return (formats ?? '').split(/, | and /).filter(Boolean);
  }

  spans(...window: SpanWindow): Promise<SpanSet | null> {
    return askSpans(this.server, 'api/spans', window);
  }

  view(name: string, query: Record<string, string>): Promise<TableView> {
    return this.server.json<TableView>(`api/views/${name}?${new URLSearchParams(query)}`);
  }

  /** The browser reconnects by itself with Last-Event-ID; when it gives up, this does. */
  private listen(): void {
    this.events?.close();
    const events = new EventSource(this.server.address(`api/events?from=${this.sequence}`));
    this.events = events;
    events.onopen = () => {
      this.retry = RETRY_FIRST;
      this.reader.link('live', 'Live');
    };
    events.addEventListener('delta', (event) => this.take(event as MessageEvent<string>));
    events.addEventListener('reset', () => void this.refresh());
    events.addEventListener('end', () => this.finish());
    events.onerror = () => {
      if (events.readyState === EventSource.CLOSED) this.again('the connection was closed');
      else this.reader.link('lost', 'The connection is lost; trying again…');
    };
  }

  private take(event: MessageEvent<string>): void {
    const doc = decode(fromBase64(event.data));
    if (doc.head.sequence <= this.sequence) return; // met twice on the way back
    if (doc.head.sequence !== this.sequence + 1) {
      void this.refresh();
      return;
    }
    this.sequence = doc.head.sequence;
    this.reader.delta(doc);
    this.reader.link('live', 'Live');
  }

  private again(why: string): void {
    this.events?.close();
    if (this.left) return;
    this.reader.link('lost', `No connection: ${why}. Trying again…`);
    this.timer = setTimeout(() => void this.refresh(), this.retry);
    this.retry = Math.min(this.retry * 2, RETRY_MOST);
  }
}
