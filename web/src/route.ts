// What is shown, as the address says it: the back button restores it and it can be sent to others.

import { signal } from '@preact/signals';

export type View = 'jobs' | 'overview' | 'flame' | 'timeline' | 'memory' | 'calls' | 'counters';
export type FlameTab = 'graph' | 'sandwich' | 'table' | 'lines';

/** Those of a recording; a server of jobs has its own before them. */
export const VIEWS: View[] = ['overview', 'flame', 'timeline', 'memory', 'calls', 'counters'];
export const FLAME_TABS: FlameTab[] = ['graph', 'sandwich', 'table', 'lines'];

export interface Route {
  view: View;
  tab: FlameTab;
  value: string; // id of a ValueKind; '': the default
  processes: number[]; // none: all
  threads: number[];
  range: [number, number] | null; // ns since the start
  query: string;
  colour: 'kind' | 'module';
  shape: 'icicle' | 'flame';
  symbol: number; // of sandwich, lines and calls; -1: none
  zoom: [number, number] | null; // part of the graph's width
  compare: boolean;
  per: '' | 'run' | 'share'; // how two recordings are compared; '': as their totals ask for
  job: number; // 0: none
  other: number; // that it is compared with
  metric: string; // of benchmarks
  recording: string; // "2001/KEY": one that a job has kept
}

const START: Route = {
  view: 'overview',
  tab: 'graph',
  value: '',
  processes: [],
  threads: [],
  range: null,
  query: '',
  colour: 'kind',
  shape: 'icicle',
  symbol: -1,
  zoom: null,
  compare: true,
  per: '',
  job: 0,
  other: 0,
  metric: '',
  recording: '',
};

function numbers(text: string | null): number[] {
  return (text ?? '').split('.').filter(Boolean).map(Number).filter(Number.isFinite);
}

function pair(text: string | null): [number, number] | null {
  const [a, b] = (text ?? '').split('~').map(Number);
  return Number.isFinite(a) && Number.isFinite(b) && text && a < b ? [a, b] : null;
}

function oneOf<T extends string>(text: string | null | undefined, all: readonly T[], or: T): T {
  return all.includes(text as T) ? (text as T) : or;
}

export function parseRoute(hash: string): Route {
  const [path, query] = hash.replace(/^#\/?/, '').split('?');
  const [view, tab] = path.split('/');
  const q = new URLSearchParams(query ?? '');
  const symbol = Number(q.get('symbol') ?? -1);
  return {
    view: oneOf(view, [...VIEWS, 'jobs'], 'overview'),
    tab: oneOf(tab, FLAME_TABS, 'graph'),
    value: q.get('value') ?? '',
    processes: numbers(q.get('process')),
    threads: numbers(q.get('thread')),
    range: pair(q.get('time')),
    query: q.get('search') ?? '',
    colour: oneOf(q.get('colour'), ['kind', 'module'], 'kind'),
    shape: oneOf(q.get('shape'), ['icicle', 'flame'], 'icicle'),
    symbol: Number.isInteger(symbol) ? symbol : -1,
    zoom: pair(q.get('zoom')),
    compare: q.get('compare') !== 'off',
    per: oneOf(q.get('per'), ['', 'run', 'share'], ''),
    job: Number(q.get('job')) || 0,
    other: Number(q.get('with')) || 0,
    metric: q.get('metric') ?? '',
    recording: /^\d+\/[\w.:-]+$/.test(q.get('recording') ?? '') ? q.get('recording')! : '',
  };
}

export function formatRoute(r: Route): string {
  const q = new URLSearchParams();
  if (r.value) q.set('value', r.value);
  if (r.processes.length) q.set('process', r.processes.join('.'));
  if (r.threads.length) q.set('thread', r.threads.join('.'));
  if (r.range) q.set('time', r.range.map(Math.round).join('~'));
  if (r.query) q.set('search', r.query);
  if (r.colour !== 'kind') q.set('colour', r.colour);
  if (r.shape !== 'icicle') q.set('shape', r.shape);
  if (r.symbol >= 0) q.set('symbol', String(r.symbol));
  if (r.zoom) q.set('zoom', r.zoom.map((z) => z.toPrecision(9)).join('~'));
  if (!r.compare) q.set('compare', 'off');
  if (r.per) q.set('per', r.per);
  if (r.job) q.set('job', String(r.job));
  if (r.other) q.set('with', String(r.other));
  if (r.metric) q.set('metric', r.metric);
  if (r.recording) q.set('recording', r.recording);
  const tail = q.toString();
  return `#/${r.view}${r.view === 'flame' ? `/${r.tab}` : ''}${tail ? `?${tail}` : ''}`;
}

const outside = typeof location === 'undefined';
export const route = signal<Route>(outside ? START : parseRoute(location.hash));

/** Goes there; with `replace` the step before is forgotten (typing, dragging). */
export function go(change: Partial<Route>, replace = false): void {
  const next = { ...route.peek(), ...change };
  const address = formatRoute(next);
  if (address === formatRoute(route.peek())) return;
  if (replace) history.replaceState(null, '', address);
  else history.pushState(null, '', address);
  route.value = next;
}

export function followHistory(): void {
  const follow = () => {
    route.value = parseRoute(location.hash);
  };
  addEventListener('popstate', follow);
  addEventListener('hashchange', follow);
}
