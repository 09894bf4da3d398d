// Of a live recording: whether it is connected, what can be done to it, and what each command did.

import { useEffect, useState } from 'preact/hooks';
import { route } from '../route.ts';
import { link, recording, source } from '../store.ts';

interface Answer {
  ok: boolean;
  text: string;
}

export function Controls() {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [sending, setBusy] = useState(false);
  const [what, setWhat] = useState<'cpu' | 'heap'>('cpu');
  const [mark, setMark] = useState('');
  const [rate, setRate] = useState('');
  if (!source?.live || !source.control) return null;
  const target = route.value.processes[0];
  const pid = target === undefined ? undefined : recording.value?.head.processes[target]?.pid;
  const send = async (command: Record<string, unknown>) => {
    setBusy(true);
    setAnswer(await source.control!(command));
    setBusy(false);
  };
  const { state, text } = link.value;
  const busy = sending || state === 'ended';
  return (
    <section class="controls" aria-label="Recording">
      <span class={`link-state ${state}`} role="status">{text}</span>
      <select aria-label="What to control" value={what} onChange={(e) => setWhat(e.currentTarget.value as 'cpu' | 'heap')}>
        <option value="cpu">CPU</option>
        <option value="heap">Heap</option>
      </select>
      {(['start', 'stop', 'snapshot'] as const).map((command) => (
        <button key={command} type="button" disabled={busy} onClick={() => send({ command, what, pid })}>
          {command[0].toUpperCase() + command.slice(1)}
        </button>
      ))}
      <span class="faint">{pid === undefined ? 'of the whole tree' : `of process ${pid}`}</span>
      <form onSubmit={(e) => (e.preventDefault(), void send({ command: 'rate', hz: Number(rate) }))}>
        <input aria-label="Samples a second" type="number" min="1" max="10000" placeholder="Hz" value={rate}
          onInput={(e) => setRate(e.currentTarget.value)} />
        <button type="submit" disabled={busy || !(Number(rate) > 0)}>Set rate</button>
      </form>
      <form onSubmit={(e) => (e.preventDefault(), void send({ command: 'mark', text: mark }))}>
        <input aria-label="Name of this moment" placeholder="name this moment" value={mark} maxLength={120}
          onInput={(e) => setMark(e.currentTarget.value)} />
        <button type="submit" disabled={busy || !mark}>Mark</button>
      </form>
      <Download />
      {answer && <output class={`answer ${answer.ok ? 'good' : 'bad'}`}>{answer.text}</output>}
    </section>
  );
}

function Download() {
  const [format, setFormat] = useState('sonde');
  const [formats, setFormats] = useState(['sonde', 'page', 'pprof', 'speedscope', 'folded']);
  useEffect(() => void source.formats?.().then((list) => list.length && setFormats(list), () => undefined), []);
  return (
    <span class="download">
      <select aria-label="Format of the download" value={format} onChange={(e) => setFormat(e.currentTarget.value)}>
        {formats.map((f) => <option key={f} value={f}>{f === 'page' ? 'page (HTML)' : f}</option>)}
      </select>
      <a class="button" href={source.download!(format)} download>Download</a>
    </span>
  );
}
