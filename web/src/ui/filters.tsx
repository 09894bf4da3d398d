// What is chosen, above every view: the value, the search, and a chip for each filter that holds.

import { useEffect, useRef, useState } from 'preact/hooks';
import { moment, when } from '../data/format.ts';
import { go, route } from '../route.ts';
import { base, byShare, coded, comparing, kind, kinds, recording, sides } from '../store.ts';

export function Filters() {
  const { view } = route.value;
  const groups = ['Time', 'Memory', 'Events'] as const;
  const counted = view !== 'counters' && view !== 'memory' && view !== 'timeline';
  return (
    <section class="filters" aria-label="What is chosen">
      {counted && (
        <label class="field">
          <span class="field-label">Value</span>
          <select value={kind.value?.id ?? ''} title={kind.value?.hint}
            onChange={(e) => go({ value: e.currentTarget.value, zoom: null })}>
            {groups.map((group) => {
              const list = kinds.value.filter((k) => k.group === group);
              return list.length > 0 && (
                <optgroup key={group} label={group}>
                  {list.map((k) => <option key={k.id} value={k.id}>{k.label}</option>)}
                </optgroup>
              );
            })}
          </select>
        </label>
      )}
      {view !== 'overview' && view !== 'memory' && <Search />}
      <Chips />
      {base.value && (
        <label class="check">
          <input type="checkbox" checked={comparing.value} onChange={(e) => go({ compare: e.currentTarget.checked, zoom: null })} />
          Compare with {otherName()}
        </label>
      )}
      {comparing.value && view === 'flame' && <Measure />}
    </section>
  );
}

/** How the two are compared: here alone, since other views need no sums of both. */
function Measure() {
  if (!coded.value || !kind.value) return null;
  if (!sides.value) return <span class="field-note">it has no {kind.value.label}: nothing is compared</span>;
  return (
    <select aria-label="How the one before is compared" value={byShare.value ? 'share' : 'run'}
      onChange={(e) => go({ per: e.currentTarget.value === 'share' ? 'share' : 'run', zoom: null })}>
      <option value="run">as recorded</option>
      <option value="share">at the same total</option>
    </select>
  );
}

/** What is compared with: two runs of one program have the same title. */
function otherName(): string {
  const { title, date } = base.value!.recording.head.meta;
  return title === recording.value!.head.meta.title && date ? `the run of ${when(date)}` : title;
}

/** Typing replaces the step of the history that it began. */
function Search() {
  const [text, setText] = useState(route.value.query);
  const input = useRef<HTMLInputElement>(null);
  const timer = useRef(0);
  const { query } = route.value;
  useEffect(() => setText(query), [query]);
  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      const target = e.target as HTMLElement;
      if (e.key !== '/' || /^(input|select|textarea)$/i.test(target.tagName)) return;
      e.preventDefault();
      input.current?.focus();
      input.current?.select();
    };
    addEventListener('keydown', key);
    return () => removeEventListener('keydown', key);
  }, []);
  const change = (next: string) => {
    setText(next);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => go({ query: next }, true), 150);
  };
  let broken = false;
  try {
    new RegExp(text);
  } catch {
    broken = true;
  }
  return (
    <label class="field search">
      <span class="field-label">Search</span>
      <input ref={input} type="search" value={text} placeholder="name or regular expression" spellcheck={false}
        aria-describedby={broken ? 'search-note' : undefined}
        onInput={(e) => change(e.currentTarget.value)}
        onKeyDown={(e) => e.key === 'Escape' && (change(''), input.current?.blur())} />
      {broken && <span id="search-note" class="field-note">no expression: searched as text</span>}
    </label>
  );
}

/** What the chosen time does not narrow in the view that is shown; '': it narrows all. */
function notNarrowed(): string {
  const { view } = route.value;
  if (view === 'memory') return 'memory has no times: its sums are of the whole recording';
  const shown = view === 'counters' ? kinds.value.filter((k) => k.events.length === 1) : view !== 'timeline' && kind.value ? [kind.value] : [];
  const untimed = shown.filter((k) => !k.timed);
  if (!untimed.length) return '';
  if (untimed.length < shown.length) return `what has no times (${untimed.some((k) => k.group === 'Memory') ? 'memory' : untimed[0].label}) is of the whole recording`;
  return `${untimed[0].label} has no times: the whole recording is shown`;
}

function Chips() {
  const r = recording.value!;
  const { processes, threads, range } = route.value;
  const chips: { key: string; text: string; remove: () => void }[] = [];
  for (const p of processes) {
    const head = r.head.processes[p];
    if (head)
      chips.push({ key: `p${p}`, text: `${head.name || 'process'} ${head.pid}`,
        remove: () => go({ processes: processes.filter((x) => x !== p), zoom: null }) });
  }
  for (const t of threads) {
    const head = r.head.threads[t];
    if (head)
      chips.push({ key: `t${t}`, text: `thread ${head.name} ${head.tid}`,
        remove: () => go({ threads: threads.filter((x) => x !== t), zoom: null }) });
  }
  if (range) {
    const step = (range[1] - range[0]) / 20;
    chips.push({ key: 'range', text: `${moment(range[0], step)} – ${moment(range[1], step)}`,
      remove: () => go({ range: null, zoom: null }) });
  }
  if (!chips.length) return null;
  const whole = range && notNarrowed();
  return (
    <div class="chips">
      {chips.map((c) => (
        <span key={c.key} class="chip">
          {c.text}
          <button type="button" aria-label={`Remove the filter ${c.text}`} onClick={c.remove}>×</button>
        </span>
      ))}
      {chips.length > 1 && (
        <button type="button" class="quiet" onClick={() => go({ processes: [], threads: [], range: null, zoom: null })}>Clear</button>
      )}
      {whole && <span class="faint">{whole}</span>}
      {comparing.value && <span class="faint">comparisons are of whole recordings</span>}
    </div>
  );
}
