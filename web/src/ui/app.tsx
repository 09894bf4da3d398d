// The frame of the page: what ran, the views, what is chosen, and the view itself.

import { useEffect, useRef } from 'preact/hooks';
import { go, route, VIEWS, type View } from '../route.ts';
import { coded, fault, jobs, openStored, recording } from '../store.ts';
import { Calls } from '../views/calls.tsx';
import { Counters } from '../views/counters.tsx';
import { Flame } from '../views/flame.tsx';
import { Jobs } from '../views/jobs.tsx';
import { Memory } from '../views/memory.tsx';
import { Overview } from '../views/overview.tsx';
import { Timeline } from '../views/timeline.tsx';
import { Controls } from './controls.tsx';
import { Filters } from './filters.tsx';
import { Help, helping } from './help.tsx';
import { Empty } from './parts.tsx';
import { chooseTheme, dark, theme } from './theme.ts';

const NAMES: Record<View, string> = {
  jobs: 'Jobs',
  overview: 'Overview',
  flame: 'Flame',
  timeline: 'Timeline',
  memory: 'Memory',
  calls: 'Calls',
  counters: 'Counters',
};

const PARTS: Record<Exclude<View, 'jobs'>, () => preact.JSX.Element | null> = {
  overview: Overview,
  flame: Flame,
  timeline: Timeline,
  memory: Memory,
  calls: Calls,
  counters: Counters,
};

/** Those that a person can go to, as they stand in the head of the page. */
function offered(): View[] {
  return [...(jobs ? ['jobs' as const] : []), ...(jobs && !route.value.recording ? [] : VIEWS)];
}

/** Keys that hold in every view. */
function useKeys(): void {
  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      if (e.ctrlKey || e.metaKey || e.altKey || /^(input|select|textarea)$/i.test((e.target as HTMLElement).tagName)) return;
      const view = offered()[Number(e.key) - 1];
      if (e.key === '?') helping.value = !helping.value;
      else if (view && !helping.value) go({ view, zoom: null });
    };
    addEventListener('keydown', key);
    return () => removeEventListener('keydown', key);
  }, []);
}

/** Another view begins at its top; the back button restores what the browser remembers. */
function useTop(view: View): void {
  const last = useRef(view);
  useEffect(() => {
    if (last.current !== view) window.scrollTo(0, 0);
    last.current = view;
  }, [view]);
}

export function App() {
  const r = recording.value;
  const { view, recording: stored } = route.value;
  useEffect(() => {
    document.documentElement.dataset.theme = dark.value ? 'dark' : 'light';
  }, [dark.value]);
  useEffect(() => {
    if (jobs) void openStored(stored);
  }, [stored]);
  useKeys();
  useTop(view);
  const title = r?.head.meta.title ?? '';
  useEffect(() => {
    document.title = view === 'jobs' || (jobs && !stored) ? 'Jobs · sonde' : title ? `${title} · sonde` : 'sonde';
  }, [title, view]);
  const shown = jobs && (view === 'jobs' || !stored) ? 'jobs' : view === 'jobs' ? 'overview' : view;
  if (shown !== 'jobs' && fault.value)
    return <main class="alone"><Empty title="This page cannot be shown">{fault.value}{jobs && <> <a href="#/jobs">Back to the jobs</a></>}</Empty></main>;
  if (shown !== 'jobs' && !r) return <main class="alone"><p class="loading" role="status">Reading the recording…</p></main>;
  // All views but the unfiltered overview add up stacks.
  const { processes, threads, range } = route.value;
  const waits = shown !== 'jobs' && !coded.value && (shown !== 'overview' || processes.length > 0 || threads.length > 0 || range !== null);
  const Part = shown === 'jobs' ? Jobs : PARTS[shown];
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => (e.preventDefault(), document.getElementById('main')?.focus())}>Skip to the view</a>
      <header class="top">
        <span class="brand">sonde</span>
        {shown === 'jobs' ? <h1>Jobs</h1> : <h1 title={title}>{title}</h1>}
        <Views shown={shown} />
        <span class="top-tools">
          <button type="button" class="theme" aria-label="Keys and pointer" title="Keys and pointer (?)" onClick={() => (helping.value = true)}>?</button>
          <ThemeButton />
        </span>
      </header>
      {shown !== 'jobs' && <><Controls /><Filters /></>}
      <main id="main" tabIndex={-1} aria-busy={shown !== 'jobs' && !coded.value}>{waits ? <p class="loading" role="status">Reading the stacks…</p> : <Part key={shown} />}</main>
      <Help />
    </>
  );
}

function Views(props: { shown: View }) {
  return (
    <nav aria-label="Views">
      {offered().map((v) => (
        <a key={v} href={`#/${v}`} aria-current={v === props.shown ? 'page' : undefined}
          onClick={(e) => (e.preventDefault(), go({ view: v, zoom: null }))}>
          {NAMES[v]}
        </a>
      ))}
    </nav>
  );
}

function ThemeButton() {
  const next = theme.value === 'auto' ? (dark.value ? 'light' : 'dark') : theme.value === 'dark' ? 'light' : 'dark';
  return (
    <button type="button" class="theme" aria-label={`Use ${next} colours`} title={`Use ${next} colours`} onClick={() => chooseTheme(next)}>
      {dark.value ? '☀' : '☾'}
    </button>
  );
}
