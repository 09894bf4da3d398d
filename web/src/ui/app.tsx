// The frame of the page: what ran, the views, what is chosen, and the view itself.

import { useEffect } from 'preact/hooks';
import { go, route, VIEWS, type View } from '../route.ts';
import { fault, recording } from '../store.ts';
import { Calls } from '../views/calls.tsx';
import { Counters } from '../views/counters.tsx';
import { Flame } from '../views/flame.tsx';
import { Memory } from '../views/memory.tsx';
import { Overview } from '../views/overview.tsx';
import { Timeline } from '../views/timeline.tsx';
import { Controls } from './controls.tsx';
import { Filters } from './filters.tsx';
import { Empty } from './parts.tsx';
import { chooseTheme, dark, theme } from './theme.ts';

const NAMES: Record<View, string> = {
  overview: 'Overview',
  flame: 'Flame',
  timeline: 'Timeline',
  memory: 'Memory',
  calls: 'Calls',
  counters: 'Counters',
};

const PARTS: Record<View, () => preact.JSX.Element | null> = {
  overview: Overview,
  flame: Flame,
  timeline: Timeline,
  memory: Memory,
  calls: Calls,
  counters: Counters,
};

export function App() {
  const r = recording.value;
  const { view } = route.value;
  useEffect(() => {
    document.documentElement.dataset.theme = dark.value ? 'dark' : 'light';
  }, [dark.value]);
  useEffect(() => {
    if (r) document.title = `${r.head.meta.title} · sonde`;
  }, [r]);
  if (fault.value)
    return <main class="alone"><Empty title="This page cannot be shown">{fault.value}</Empty></main>;
  if (!r) return <main class="alone"><p class="loading" role="status">Reading the recording…</p></main>;
  const Part = PARTS[view];
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => (e.preventDefault(), document.getElementById('main')?.focus())}>Skip to the view</a>
      <header class="top">
        <span class="brand">sonde</span>
        <h1 title={r.head.meta.title}>{r.head.meta.title}</h1>
        <nav aria-label="Views">
          {VIEWS.map((v) => (
            <a key={v} href={`#/${v}`} aria-current={v === view ? 'page' : undefined}
              onClick={(e) => (e.preventDefault(), go({ view: v, zoom: null }))}>
              {NAMES[v]}
            </a>
          ))}
        </nav>
        <ThemeButton />
      </header>
      <Controls />
      <Filters />
      <main id="main" tabIndex={-1}><Part key={view} /></main>
    </>
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
