// The recording and everything computed from it and from the route. Each value is computed when
// a view asks for it and kept until what it depends on changes.

import { computed, signal } from '@preact/signals';
import { alike, Comparer, type Comparison } from './data/compare.ts';
import { layOut, type Layout } from './data/layout.ts';
import { Recording } from './data/recording.ts';
import { EmbeddedSource, LiveSource, StoredSource, type Link, type Reader, type Source } from './data/source.ts';
import { functions, sum, type Choice, type FunctionRow, type Sums } from './data/sums.ts';
import { CallTree } from './data/tree.ts';
import { defaultValue, valueKinds, type ValueKind } from './data/values.ts';
import { route } from './route.ts';

/** The tree is built when a view first asks for it. */
class Held {
  private built: CallTree | null = null;

  constructor(readonly recording: Recording) {}

  get tree(): CallTree {
    return (this.built ??= new CallTree(this.recording));
  }
}

export const held = signal<Held | null>(null);
/** Are stacks and their sums there? Of a large file they come after the first view. */
export const coded = signal(false);
/** Counts up with each document that has been taken in. */
export const version = signal(0);
export const base = signal<Held | null>(null);
export const fault = signal('');
export const link = signal<{ state: Link; text: string }>({ state: 'file', text: '' });
export let source: Source;

/** Rows that deltas have added before the whole is asked for again, which is smaller. */
const ROWS_MOST = 2_000_000;

const reader: Reader = {
  whole(doc) {
    const recording = new Recording();
    recording.apply(doc);
    coded.value = !doc.waits();
    held.value = new Held(recording);
    version.value++;
  },
  rest() {
    coded.value = true;
    version.value++;
  },
  delta(doc) {
    const recording = held.peek()?.recording;
    if (!recording) return;
    recording.apply(doc);
    if (recording.cells.length + recording.times.length > ROWS_MOST) void source.refresh?.();
    version.value++;
  },
  link(state, text) {
    link.value = { state, text };
  },
};

/** Is this the page of a server of jobs? Then a recording is there only when one has been opened. */
export const jobs = typeof document !== 'undefined' && document.getElementById('app')?.dataset.serves === 'jobs';

/** Opens a recording that a job has kept; '': none. */
export async function openStored(name: string): Promise<void> {
  held.value = null;
  fault.value = '';
  if (!name) return;
  const [job, key] = name.split('/');
  source = new StoredSource(`api/jobs/${job}/recordings/${encodeURIComponent(key)}`);
  try {
    await source.start(reader);
  } catch (error) {
    fault.value = error instanceof Error ? error.message : String(error);
  }
}

export async function load(): Promise<void> {
  if (jobs) return;
  try {
    const file = EmbeddedSource.present() ? new EmbeddedSource() : null;
    source = file ?? new LiveSource();
    await source.start(reader);
    const other = await file?.base();
    if (other) {
      const recording = new Recording();
      recording.apply(other);
      base.value = new Held(recording);
    }
  } catch (error) {
    fault.value = error instanceof Error ? error.message : String(error);
  }
}

export const recording = computed(() => {
  version.value;
  return held.value?.recording ?? null;
});

export const kinds = computed<ValueKind[]>(() => {
  version.value;
  return recording.value ? valueKinds(recording.value) : [];
});

export const kind = computed<ValueKind | undefined>(() => {
  const id = route.value.value;
  return kinds.value.find((k) => k.id === id) ??
    (recording.value ? defaultValue(kinds.value, recording.value, route.value.view) : undefined);
});

/** Parts of the route that sums depend on: as texts, so that other changes of it cost nothing. */
const chosenTasks = computed(() => `${route.value.processes.join('.')}/${route.value.threads.join('.')}`);
const chosenRange = computed(() => route.value.range?.join('~') ?? '');
const query = computed(() => route.value.query);

/** By thread: is it chosen? null: all are. */
export const threadMask = computed<Uint8Array | null>(() => {
  version.value;
  chosenTasks.value;
  const r = recording.value;
  const { processes, threads } = route.peek();
  if (!r || (!processes.length && !threads.length)) return null;
  const mask = new Uint8Array(r.head.threads.length);
  r.head.threads.forEach((t, i) => {
    if (threads.includes(i) || processes.includes(t.process)) mask[i] = 1;
  });
  return mask;
});

export function choiceOf(k: ValueKind | undefined, r: Recording, mask: Uint8Array | null,
  range: [number, number] | null): Choice {
  const events = new Uint8Array(r.head.events.length);
  for (const event of k?.events ?? []) events[event] = 1;
  return { events, threads: mask, range: k?.timed ? range : null, waits: k?.id === 'wall' };
}

export const choice = computed<Choice | null>(() => {
  version.value;
  const r = recording.value;
  const range = chosenRange.value ? route.peek().range : null;
  return r ? choiceOf(kind.value, r, threadMask.value, range) : null;
});

export const comparing = computed(() => base.value !== null && route.value.compare);

const comparer = computed(() =>
  base.value && held.value ? new Comparer(held.value.tree, base.value.tree) : null);

const plain = computed<Sums | null>(() => {
  version.value;
  return held.value && choice.value ? sum(held.value.tree, choice.value) : null;
});

/** Both recordings, whole: what is chosen here means nothing there. null: there is none of it in the other one. */
export const sides = computed<{ after: Sums; before: Sums } | null>(() => {
  version.value;
  if (!coded.value || !comparing.value || !held.value || !kind.value) return null;
  const other = base.value!;
  const there = valueKinds(other.recording).find((k) => k.id === kind.value!.id);
  return there ? { after: sum(held.value.tree, choiceOf(kind.value, held.value.recording, null, null)),
    before: sum(other.tree, choiceOf(there, other.recording, null, null)) } : null;
});

/** Are shares of each total compared, not what was recorded? */
export const byShare = computed(() => {
  const { per } = route.value;
  const s = sides.value;
  return per ? per === 'share' : s !== null && !alike(s.after, s.before, held.value!.recording, base.value!.recording);
});

/** In one tree. */
export const comparison = computed<Comparison | null>(() => {
  const s = sides.value;
  return s && comparer.value!.compare(s.after, s.before, byShare.value && s.before.value ? s.after.value / s.before.value : 1);
});

export const sums = computed<Sums | null>(() => comparison.value?.after ?? plain.value);

export const layout = computed<Layout | null>(() => {
  const s = sums.value;
  return s ? layOut(s, comparison.value?.width) : null;
});

export const functionRows = computed<FunctionRow[]>(() => (sums.value ? functions(sums.value) : []));

export const beforeRows = computed<Map<number, FunctionRow> | null>(() =>
  comparison.value ? new Map(functions(comparison.value.before).map((row) => [row.symbol, row])) : null);

/** The search as an expression, a part of a name if it is none; null: nothing is searched. */
export const pattern = computed<RegExp | null>(() => {
  if (!query.value) return null;
  try {
    return new RegExp(query.value, 'i');
  } catch {
    return new RegExp(query.value.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'i');
  }
});

export const duration = computed(() => {
  version.value;
  return recording.value?.head.meta.duration ?? 0;
});
