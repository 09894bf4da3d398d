// Jobs: what a server keeps of many runs. The list, and of the chosen one its curves, functions,
// benchmarks and recordings, alone or beside another.

import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { bytes, change, count, percent, plural, value as formatValue, when as formatWhen } from '../data/format.ts';
import { JobsServer, unitOf, type FunctionTable, type Job, type JobDetails, type Kept } from '../data/jobs.ts';
import { lineColour } from '../paint/colours.ts';
import { go, route } from '../route.ts';
import { Chart } from '../ui/chart.tsx';
import { Card, Empty, Fact, Share } from '../ui/parts.tsx';
import { Table, type Column } from '../ui/table.tsx';
import { dark } from '../ui/theme.ts';
import { Benchmarks } from './benchmarks.tsx';

const server = new JobsServer();
const TOP = 100;
const AGAIN = 30_000; // ms after which what is shown is asked for again without word of news
const TOGETHER = 400; // ms that news are gathered for

/** Counts up when something was added to a job. */
const news = signal(0);

/** Listens for what is added while the view is there. */
function useNews(): void {
  useEffect(() => {
    let timer = 0;
    const stop = server.listen(() => {
      if (!timer) timer = window.setTimeout(() => ((timer = 0), news.value++), TOGETHER);
    });
    return () => (clearTimeout(timer), stop());
  }, []);
}

export function when(ns: number): string {
  return ns ? formatWhen(ns / 1e6) : '–';
}

/** What a request gives, asked for again when there is news; the sentence if it fails. */
function useAnswer<T>(ask: () => Promise<T>, keys: unknown[]): { data: T | null; fault: string; again: () => void } {
  const [state, setState] = useState<{ data: T | null; fault: string }>({ data: null, fault: '' });
  const [round, setRound] = useState(0);
  useEffect(() => setState({ data: null, fault: '' }), keys);
  useEffect(() => {
    let gone = false;
    ask().then(
      (data) => !gone && setState({ data, fault: '' }),
      (error: Error) => !gone && setState((before) => ({ ...before, fault: error.message })),
    );
    const timer = setTimeout(() => setRound(round + 1), AGAIN);
    return () => ((gone = true), clearTimeout(timer));
  }, [...keys, round, news.value]);
  return { ...state, again: () => setRound(round + 1) };
}

export function Jobs() {
  useNews();
  const { data, fault, again } = useAnswer(() => server.list(), []);
  const { job } = route.value;
  if (!data)
    return <div class="view">{fault ? <Empty title="The server does not answer">{fault}</Empty> : <p class="loading" role="status">Asking for the jobs…</p>}</div>;
  const chosen = data.find((j) => j.id === job);
  return (
    <div class="view jobs">
      {fault && <p class="notice" role="status">{fault}</p>}
      <List jobs={data} again={again} />
      {chosen ? <Details key={chosen.id} job={chosen} all={data} /> : data.length > 0 && (
        <Empty title="Choose a job">Its curves, functions, benchmarks and recordings are shown here.</Empty>
      )}
    </div>
  );
}

function List(props: { jobs: Job[]; again: () => void }) {
  const [said, setSaid] = useState<{ ok: boolean; text: string } | null>(null);
  const [asked, setAsked] = useState(0);
  const act = async (what: () => Promise<string>) => {
    try {
      setSaid({ ok: true, text: await what() });
    } catch (error) {
      setSaid({ ok: false, text: (error as Error).message });
    }
    setAsked(0);
    props.again();
  };
  const remove = (id: number) => act(async () => {
    await server.remove(id);
    if (route.value.job === id) go({ job: 0, other: 0 });
    return `Job ${id} was removed with all it held.`;
  });
  const columns: Column<Job>[] = [
    { id: 'id', heading: 'Job', number: true, by: (j) => j.id, show: (j) => <button type="button" class="link" onClick={() => go({ job: j.id, other: 0 })}>{j.id}</button> },
    { id: 'info', heading: 'About', by: (j) => j.info, class: 'fill', show: (j) => <span title={j.info}>{j.info || <span class="faint">no description</span>}</span> },
    { id: 'batches', heading: 'Pushes', number: true, by: (j) => j.batches, show: (j) => count(j.batches) },
    { id: 'updated', heading: 'Last push', by: (j) => j.updated, class: 'wide-only', show: (j) => (j.batches ? when(j.updated) : <span class="faint">none yet</span>) },
    { id: 'remove', heading: 'Remove', silent: true, show: (j) => (asked === j.id ? (
      <span class="sure" onClick={(e) => e.stopPropagation()}>
        Remove it with all it holds? <button type="button" class="danger" onClick={() => void remove(j.id)}>Remove</button>{' '}
        <button type="button" onClick={() => setAsked(0)}>Keep</button>
      </span>
    ) : <button type="button" class="quiet" aria-label={`Remove job ${j.id}`} onClick={(e) => (e.stopPropagation(), setAsked(j.id))}>Remove</button>) },
  ];
  return (
    <Card title="Jobs" class="job-list" aside={<Create act={act} />}>
      {said && <p class={`answer card-foot ${said.ok ? 'good' : 'bad'}`} role="status">{said.text}</p>}
      <Table caption="Jobs" rows={props.jobs} keyOf={(j) => j.id} sort="updated" columns={columns} chosen={route.value.job}
        open={(j) => go({ job: j.id, other: 0 })} empty="There are no jobs yet: create one here, or with sonde job create." />
    </Card>
  );
}

function Create(props: { act: (what: () => Promise<string>) => Promise<void> }) {
  const [id, setId] = useState('');
  const [info, setInfo] = useState('');
  return (
    <form class="create" onSubmit={(e) => {
      e.preventDefault();
      void props.act(async () => {
        const made = await server.create(Number(id) || undefined, info);
        setId('');
        setInfo('');
        go({ job: made.id, other: 0 });
        return `Job ${made.id} was created.`;
      });
    }}>
      <input aria-label="Number of the new job" type="number" min="2001" max="9999" placeholder="next free" value={id} onInput={(e) => setId(e.currentTarget.value)} />
      <input aria-label="What the new job is about" placeholder="what it is about" maxLength={1024} value={info} onInput={(e) => setInfo(e.currentTarget.value)} />
      <button type="submit">Create</button>
    </form>
  );
}

function Details(props: { job: Job; all: Job[] }) {
  const { id } = props.job;
  const { value, other } = route.value;
  const shown = useAnswer(() => server.show(id), [id]);
  const recordings = useAnswer(() => server.recordings(id), [id]);
  const runs = useAnswer(() => server.bench(id), [id]);
  const events = shown.data?.events ?? [];
  const event = events.some((e) => e.name === value) ? value : (events.find((e) => e.name === 'cpu') ?? events[0])?.name ?? '';
  const beside = props.all.find((j) => j.id === other && j.id !== id);
  return (
    <>
      <h2 class="job-title">Job {id}{props.job.info && <span class="faint"> · {props.job.info}</span>}</h2>
      <Totals job={shown.data} runs={runs.data?.length ?? 0} kept={recordings.data ?? []} />
      {events.length > 0 && (
        <>
          <div class="toolbar">
            <Choice label="Event" value={event} choose={(v) => go({ value: v })} options={events.map((e) => [e.name, e.name])} />
            <Choice label="Beside" value={beside ? String(beside.id) : ''} choose={(v) => go({ other: Number(v) || 0 })}
              options={[['', 'no other job'], ...props.all.filter((j) => j.id !== id).map((j): [string, string] => [String(j.id), `${j.id} ${j.info}`.trim()])]} />
          </div>
          <div class="columns even">
            <Curve id={id} event={event} other={beside?.id ?? 0} />
            {beside ? <Compared a={id} b={beside.id} event={event} /> : <Top id={id} event={event} whole={events.find((e) => e.name === event)?.value ?? 0} />}
          </div>
        </>
      )}
      {shown.data && !events.length && !runs.data?.length && (
        <Empty title="Nothing was pushed yet">
          <span class="mono">sonde run --to {location.origin} --job {id} -- CMD</span> streams a profile into it, <span class="mono">sonde bench --to {location.origin} --job {id} -- CMD</span> a benchmark.
        </Empty>
      )}
      {runs.data && runs.data.length > 0 && <Benchmarks runs={runs.data} />}
      {recordings.data && recordings.data.length > 0 && <Recordings id={id} kept={recordings.data} />}
    </>
  );
}

function Choice(props: { label: string; value: string; options: [string, string][]; choose: (v: string) => void }) {
  return (
    <label class="field">
      <span class="field-label">{props.label}</span>
      <select value={props.value} onChange={(e) => props.choose(e.currentTarget.value)}>
        {props.options.map(([id, label]) => <option key={id} value={id}>{label}</option>)}
      </select>
    </label>
  );
}

function Totals(props: { job: JobDetails | null; runs: number; kept: Kept[] }) {
  const { job } = props;
  if (!job) return null;
  return (
    <dl class="facts">
      <Fact label="Pushes" value={count(job.batches)} note={job.batches ? `the last ${when(job.updated)}` : 'none yet'} />
      <Fact label="Events" value={count(job.events.length)} note={job.events.slice(0, 3).map((e) => e.name).join(', ') || 'none yet'} />
      <Fact label="Benchmark runs" value={count(props.runs)} />
      <Fact label="Recordings" value={count(props.kept.length)} note={props.kept.length ? bytes(props.kept.reduce((a, r) => a + r.size, 0)) : 'none kept'} />
      <Fact label="Created" value={when(job.created).slice(0, 10)} note={when(job.created).slice(11)} />
    </dl>
  );
}

function Waiting(props: { title: string; fault: string; children?: ComponentChildren }) {
  return <Card title={props.title}><p class="table-empty" role="status">{props.fault || 'Asking…'}</p></Card>;
}

function Curve(props: { id: number; event: string; other: number }) {
  const { id, event, other } = props;
  const night = dark.value;
  const answer = useAnswer(() => Promise.all([id, other].filter(Boolean).map((job) => server.curve(job, event))), [id, event, other]);
  if (!answer.data) return <Waiting title="Over time" fault={answer.fault} />;
  const all = answer.data.flat();
  if (!all.length) return <Card title="Over time"><Empty title="No curve">Nothing of this event has come with a time.</Empty></Card>;
  const span = Math.max(...all.map(([t]) => t)) - Math.min(...all.map(([t]) => t));
  const room = Math.max(120, span / 40); // s: points are not on the edges
  const start = Math.min(...all.map(([t]) => t)) - room;
  const end = Math.max(...all.map(([t]) => t)) + room;
  const times = [...new Set(all.map(([t]) => t))].sort((a, b) => a - b);
  const lines = answer.data.map((points, i) => {
    const at = new Map(points);
    return { label: `Job ${i ? other : id}`, values: times.map((t) => at.get(t) ?? 0), colour: lineColour(i, night), fill: !i, points: true };
  });
  return (
    <Card title={`${event} over time`} aside={<span class="faint">what came in each step</span>}>
      <div class="panel">
        <Chart label={`${event} over time`} times={times.map((t) => (t - start) * 1e9)} lines={lines} unit={unitOf(event)} dates={start * 1000}
          extent={(end - start) * 1e9} range={null} height={240} />
      </div>
    </Card>
  );
}

type Line = FunctionTable['rows'][number];

function nameColumns(): Column<Line>[] {
  return [
    { id: 'function', heading: 'Function', by: (l) => l.function, class: 'fill', show: (l) => <span class="function-text" title={l.function}>{l.function}</span> },
    { id: 'executable', heading: 'Executable', by: (l) => l.executable, class: 'wide-only module', show: (l) => <span title={l.executable}>{l.executable.replace(/.*\/(?=.)/, '')}</span> },
  ];
}

function Top(props: { id: number; event: string; whole: number }) {
  const { id, event, whole } = props;
  const answer = useAnswer(() => server.top(id, event, TOP), [id, event]);
  if (!answer.data) return <Waiting title="Top functions" fault={answer.fault} />;
  const at = answer.data.columns.indexOf(event);
  const of = (l: Line) => l.values[at] ?? 0;
  const columns: Column<Line>[] = [
    { id: 'value', heading: event, number: true, by: of, show: (l) => formatValue(of(l), unitOf(event)) },
    { id: 'share', heading: 'Share', number: true, by: of, class: 'bar', show: (l) => <Share part={of(l)} whole={whole}>{percent(of(l), whole)}</Share> },
    ...nameColumns(),
  ];
  return (
    <Card title={`Top functions by ${event}`}>
      <Table caption={`Top functions by ${event}`} rows={answer.data.rows} keyOf={(l) => `${l.executable}\0${l.function}`} sort="value" columns={columns} rowsFirst={20} />
    </Card>
  );
}

function Compared(props: { a: number; b: number; event: string }) {
  const { a, b, event } = props;
  const unit = unitOf(event);
  const answer = useAnswer(() => server.compare(a, b, event), [a, b, event]);
  if (!answer.data) return <Waiting title={`Jobs ${a} and ${b}`} fault={answer.fault} />;
  const column = (job: number) => answer.data!.columns.indexOf(String(job));
  const [left, right] = [column(a), column(b)];
  const of = (l: Line, i: number) => l.values[i] ?? 0;
  const by = (l: Line) => of(l, left) - of(l, right);
  const columns: Column<Line>[] = [
    { id: 'a', heading: `Job ${a}`, number: true, by: (l) => of(l, left), show: (l) => formatValue(of(l, left), unit) },
    { id: 'b', heading: `Job ${b}`, number: true, by: (l) => of(l, right), show: (l) => formatValue(of(l, right), unit) },
    { id: 'change', heading: `${a} − ${b}`, number: true, by, show: (l) => <span class={by(l) > 0 ? 'worse' : by(l) < 0 ? 'better' : ''}>{change(by(l), unit)}</span> },
    ...nameColumns(),
  ];
  const sum = (i: number) => answer.data!.rows.reduce((x, l) => x + of(l, i), 0);
  return (
    <Card title={`${event}: job ${a} beside job ${b}`} aside={<span class="faint">{formatValue(sum(left), unit)} and {formatValue(sum(right), unit)} in {plural(answer.data.rows.length, 'function')}</span>}>
      <Table caption={`Jobs ${a} and ${b} by ${event}`} rows={answer.data.rows} keyOf={(l) => `${l.executable}\0${l.function}`} sort="a" columns={columns} rowsFirst={20} />
    </Card>
  );
}

function Recordings(props: { id: number; kept: Kept[] }) {
  const columns: Column<Kept>[] = [
    { id: 'name', heading: 'Recording', by: (r) => r.name, class: 'fill', show: (r) => <span class="mono">{r.name || r.key}</span> },
    { id: 'host', heading: 'From', by: (r) => r.host, class: 'wide-only', show: (r) => r.host },
    { id: 'time', heading: 'Came', by: (r) => r.time, show: (r) => when(r.time) },
    { id: 'size', heading: 'Size', number: true, by: (r) => r.size, show: (r) => bytes(r.size) },
    { id: 'open', heading: 'Open', silent: true, show: (r) => (
      <span class="actions">
        <button type="button" onClick={() => go({ view: 'overview', recording: `${props.id}/${r.key}`, value: '', processes: [], threads: [], range: null, zoom: null, symbol: -1 })}
          aria-label={`Open ${r.name || r.key}`}>Open</button>
        <a class="button" href={server.download(props.id, r.key)} download={r.name || `${r.key}.sonde`}>Download</a>
      </span>) },
  ];
  return (
    <Card title="Recordings">
      <Table caption="Recordings" rows={props.kept} keyOf={(r) => r.key} sort="time" columns={columns} rowsFirst={20} />
    </Card>
  );
}
