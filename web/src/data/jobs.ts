// The server of jobs as docs/API.md has it, and what is computed from its answers.

import { value as formatValue } from './format.ts';
import { Server } from './server.ts';
import { whileVisible } from './visible.ts';

export interface Job {
  id: number;
  info: string;
  created: number; // ns since 1970
  updated: number;
  batches: number;
}

export interface JobDetails extends Job {
  events: { name: string; value: number }[];
}

export interface FunctionTable {
  columns: string[];
  rows: { executable: string; function: string; values: (number | null)[] }[];
}

export interface BenchRun {
  time: number;
  key: string;
  host: string;
  name: string;
  run: Record<string, unknown>;
}

export interface Kept {
  key: string;
  name: string;
  host: string;
  time: number;
  size: number;
}

export class JobsServer {
  private readonly server = new Server();

  async list(): Promise<Job[]> {
    return (await this.server.json<{ jobs: Job[] }>('api/jobs')).jobs;
  }

  async create(id: number | undefined, info: string): Promise<Job> {
    return (await (await this.server.send('POST', 'api/jobs', { ...(id ? { id } : {}), info })).json()) as Job;
  }

  async remove(id: number): Promise<void> {
    await this.server.send('DELETE', `api/jobs/${id}`);
  }

  show(id: number): Promise<JobDetails> {
    return this.server.json(`api/jobs/${id}`);
  }

  top(id: number, event: string, rows: number): Promise<FunctionTable> {
    return this.server.json(`api/jobs/${id}/profile?${new URLSearchParams({ event, top: String(rows) })}`);
  }

  compare(a: number, b: number, event: string): Promise<FunctionTable> {
    return this.server.json(`api/compare?${new URLSearchParams({ a: String(a), b: String(b), event })}`);
  }

  async curve(id: number, event: string): Promise<[number, number][]> {
    return (await this.server.json<{ points: [number, number][] }>(`api/jobs/${id}/curve?${new URLSearchParams({ event })}`)).points;
  }

  async bench(id: number): Promise<BenchRun[]> {
    return (await this.server.json<{ runs: BenchRun[] }>(`api/jobs/${id}/bench`)).runs;
  }

  async recordings(id: number): Promise<Kept[]> {
    return (await this.server.json<{ recordings: Kept[] }>(`api/jobs/${id}/recordings`)).recordings;
  }

  /** Calls `heard` for what is added; gives what ends it. */
  listen(heard: () => void): () => void {
    let events: EventSource | null = null;
    let missed = false;
    const follow = () => {
      events = new EventSource(this.server.address('api/jobs/live'));
      events.addEventListener('added', heard);
      if (missed) heard();
    };
    return whileVisible(follow, () => {
      events?.close();
      missed = true;
    });
  }

  download(id: number, key: string): string {
    return this.server.address(`api/jobs/${id}/recordings/${encodeURIComponent(key)}`);
  }
}

/** By the names that events have: a server keeps numbers alone. */
export function unitOf(event: string): 'ns' | 'bytes' | 'count' {
  if (/^(cpu|wall|itimer)$|^off-cpu/.test(event)) return 'ns';
  return /^heap:|_space$|-bytes$/.test(event) ? 'bytes' : 'count';
}

/** A measurement of a benchmark: times are in seconds. */
export function showMetric(metric: string, v: number): string {
  if (/^(real|user|sys|wait|delay|steal)/.test(metric)) return formatValue(v * 1e9, 'ns');
  if (/rss|memory|bytes|heap/.test(metric)) return formatValue(v, 'bytes');
  return Number.isInteger(v) || Math.abs(v) >= 1000 ? formatValue(v, 'count') : v.toPrecision(4);
}

export interface Distribution {
  name: string;
  values: number[]; // oldest first
  times: number[]; // ns since 1970
  low: number; // quartiles
  median: number;
  high: number;
  mean: number;
  deviation: number;
  outliers: number; // further from the quartiles than 1.5 times their distance
}

export function metricsOf(runs: BenchRun[]): string[] {
  const names = new Set<string>();
  for (const { run } of runs)
    for (const [key, v] of Object.entries(run)) if (typeof v === 'number' && key !== 'number') names.add(key);
  const first = ['real', 'user', 'sys'];
  return [...first.filter((n) => names.has(n)), ...[...names].filter((n) => !first.includes(n)).sort()];
}

/** The value below which a part of the sorted values lies. */
function quantile(sorted: number[], part: number): number {
  const at = (sorted.length - 1) * part;
  const below = Math.floor(at);
  const next = sorted[Math.min(below + 1, sorted.length - 1)];
  return sorted[below] + (next - sorted[below]) * (at - below);
}

export function isOutlier(d: Distribution, v: number): boolean {
  const far = 1.5 * (d.high - d.low);
  return v < d.low - far || v > d.high + far;
}

/** One for each thing that was measured. */
export function distributions(runs: BenchRun[], metric: string): Distribution[] {
  const byName = new Map<string, BenchRun[]>();
  for (const run of runs) {
    if (typeof run.run[metric] !== 'number') continue;
    byName.set(run.name, [...(byName.get(run.name) ?? []), run]);
  }
  return [...byName].map(([name, list]) => {
    const values = list.map((r) => r.run[metric] as number);
    const sorted = [...values].sort((a, b) => a - b);
    const mean = values.reduce((a, v) => a + v, 0) / values.length;
    const square = values.reduce((a, v) => a + (v - mean) ** 2, 0);
    const d: Distribution = {
      name, values, times: list.map((r) => r.time), mean,
      low: quantile(sorted, 0.25), median: quantile(sorted, 0.5), high: quantile(sorted, 0.75),
      deviation: values.length > 1 ? Math.sqrt(square / (values.length - 1)) : 0, outliers: 0,
    };
    d.outliers = values.filter((v) => isOutlier(d, v)).length;
    return d;
  });
}
