// Where a document comes from: out of the file itself, or from a server that goes on sending.

import { decode, fromBase64, inflate, type Doc } from './decode.ts';

export type Link = 'file' | 'connecting' | 'live' | 'lost' | 'ended';

export interface Reader {
  /** A whole document: what was there before is void. */
  whole(doc: Doc): void;
  delta(doc: Doc): void;
  link(state: Link, text: string): void;
}

export interface Source {
  readonly live: boolean;
  start(reader: Reader): Promise<void>;
  /** What a command did, as a sentence; only of live sources. */
  control?(command: Record<string, unknown>): Promise<{ ok: boolean; text: string }>;
  /** Address of the recording so far. */
  download?(format: string): string;
  /** Asks for the whole again. */
  refresh?(): Promise<void>;
}

async function embedded(id: string): Promise<Doc | null> {
  const element = document.getElementById(id);
  if (!element) return null;
  const text = element.textContent ?? '';
  element.textContent = '';
  return decode(await inflate(fromBase64(text)));
}

export class EmbeddedSource implements Source {
  readonly live = false;

  static present(): boolean {
    return document.getElementById('data') !== null;
  }

  async start(reader: Reader): Promise<void> {
    const doc = await embedded('data');
    if (!doc) throw new Error('this file holds no recording');
    reader.whole(doc);
    reader.link('file', '');
  }

  /** The recording to compare with, or null. */
  base(): Promise<Doc | null> {
    return embedded('base');
  }
}

const RETRY_FIRST = 500;
const RETRY_MOST = 15000;

export class LiveSource implements Source {
  readonly live = true;
  private reader!: Reader;
  private sequence = 0;
  private events: EventSource | null = null;
  private retry = RETRY_FIRST;
  private readonly token = new URLSearchParams(location.search).get('token') ?? '';

  async start(reader: Reader): Promise<void> {
    this.reader = reader;
    reader.link('connecting', 'Connecting…');
    await this.refresh();
  }

  async refresh(): Promise<void> {
    this.events?.close();
    try {
      const answer = await fetch(this.address('api/snapshot'), { cache: 'no-store' });
      if (!answer.ok) throw new Error(await sentence(answer));
      const doc = decode(new Uint8Array(await answer.arrayBuffer()));
      this.sequence = doc.head.sequence;
      this.reader.whole(doc);
      if (doc.head.meta.complete) this.reader.link('ended', 'The recording is complete.');
      else this.listen();
    } catch (fault) {
      this.again(fault instanceof Error ? fault.message : 'no answer');
    }
  }

  async control(command: Record<string, unknown>): Promise<{ ok: boolean; text: string }> {
    try {
      const answer = await fetch(this.address('api/control'), {
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
    return this.address(`api/recording?format=${encodeURIComponent(format)}`);
  }

  private address(path: string): string {
    if (!this.token) return path;
    return `${path}${path.includes('?') ? '&' : '?'}token=${encodeURIComponent(this.token)}`;
  }

  /** The browser reconnects by itself with Last-Event-ID; when it gives up, this does. */
  private listen(): void {
    const events = new EventSource(this.address(`api/events?from=${this.sequence}`));
    this.events = events;
    events.onopen = () => {
      this.retry = RETRY_FIRST;
      this.reader.link('live', 'Live');
    };
    events.addEventListener('delta', (event) => this.take(event as MessageEvent<string>));
    events.addEventListener('reset', () => void this.refresh());
    events.addEventListener('end', () => {
      events.close();
      this.reader.link('ended', 'The recording is complete.');
    });
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
    this.reader.link('lost', `No connection: ${why}. Trying again…`);
    setTimeout(() => void this.refresh(), this.retry);
    this.retry = Math.min(this.retry * 2, RETRY_MOST);
  }
}

async function sentence(answer: Response): Promise<string> {
  try {
    return String((await answer.json()).error);
  } catch {
    return `status ${answer.status}`;
  }
}
