// Of a live recording: whether it is connected, what can be done to it, and what each command did.

import { useEffect, useState } from 'preact/hooks';
import { capital } from '../data/format.ts';
import { route } from '../route.ts';
import { link, recording, source } from '../store.ts';

interface Answer {
  ok: boolean;
  text: string;
}

/** Sends a command to each process, or once for the whole tree, and gathers what they did. */
async function command(pids: number[], text: Record<string, unknown>): Promise<Answer> {
  const answers: Answer[] = [];
  for (const pid of pids.length ? pids : [undefined]) answers.push(await source.control!({ ...text, pid }));
  return { ok: answers.every((a) => a.ok), text: [...new Set(answers.map((a) => a.text))].join('; ') };
}

export function Controls() {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [sending, setSending] = useState(false);
  const [open, setOpen] = useState(false);
  if (!source?.live || !source.control) return null;
  const { state, text } = link.value;
  const send = async (answering: Promise<Answer>) => {
    setSending(true);
    setAnswer(await answering);
    setSending(false);
  };
  return (
    <section class={`controls ${open ? 'open' : ''}`} aria-label="Recording">
      <span class={`link-state ${state}`} role="status">{text}</span>
      <button type="button" class="controls-open" aria-expanded={open} onClick={() => setOpen(!open)}>Control</button>
      {state !== 'ended' && <Commands busy={sending} send={(answering) => void send(answering)} />}
      <Download />
      {answer && <output class={`answer ${answer.ok ? 'good' : 'bad'}`}>{answer.text}</output>}
    </section>
  );
}

function Commands(props: { busy: boolean; send: (answering: Promise<Answer>) => void }) {
  const { busy, send } = props;
  const [asked, setWhat] = useState<'cpu' | 'heap' | null>(null);
  const [mark, setMark] = useState('');
  const [rate, setRate] = useState('');
  const { view, processes } = route.value;
  const what = asked ?? (view === 'memory' ? 'heap' : 'cpu');
  const { head } = recording.value!;
  const pids = processes.flatMap((p) => head.processes[p]?.pid ?? []);
  const whose = pids.length > 1 ? `of ${pids.length} processes` : pids.length ? `of process ${pids[0]}` : 'of the whole tree';
  return (
    <>
      <span class="control-group">
        <select aria-label="What to control" value={what} onChange={(e) => setWhat(e.currentTarget.value as 'cpu' | 'heap')}>
          <option value="cpu">CPU</option>
          <option value="heap">Heap</option>
        </select>
        {(['start', 'stop', 'snapshot'] as const).map((verb) => (
          <button key={verb} type="button" disabled={busy} onClick={() => send(command(pids, { command: verb, what }))}>{capital(verb)}</button>
        ))}
        <span class="faint">{whose}</span>
      </span>
      <form class="control-group" onSubmit={(e) => (e.preventDefault(), send(command([], { command: 'rate', hz: Number(rate) })))}>
        <input aria-label="Samples a second" type="number" min="1" max="10000" placeholder="Hz" value={rate}
          onInput={(e) => setRate(e.currentTarget.value)} />
        <button type="submit" disabled={busy || !(Number(rate) > 0)}>Set rate</button>
      </form>
      <form class="control-group" onSubmit={(e) => (e.preventDefault(), send(command([], { command: 'mark', text: mark })), setMark(''))}>
        <input aria-label="Name of this moment" placeholder="name this moment" value={mark} maxLength={120}
          onInput={(e) => setMark(e.currentTarget.value)} />
        <button type="submit" disabled={busy || !mark}>Mark</button>
      </form>
    </>
  );
}

function Download() {
  const [format, setFormat] = useState('sonde');
  const [formats, setFormats] = useState(['sonde', 'page', 'pprof', 'speedscope', 'folded']);
  useEffect(() => void source.formats?.().then((list) => list.length && setFormats(list), () => undefined), []);
  return (
    <span class="control-group download">
      <select aria-label="Format of the download" value={format} onChange={(e) => setFormat(e.currentTarget.value)}>
        {formats.map((f) => <option key={f} value={f}>{f === 'page' ? 'page (HTML)' : f}</option>)}
      </select>
      <a class="button" href={source.download!(format)} download>Download</a>
    </span>
  );
}
