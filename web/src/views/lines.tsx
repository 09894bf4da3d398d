// Source lines: the costly ones of all functions, or one function's with the text between them.

import { useMemo } from 'preact/hooks';
import { percent, value as formatValue } from '../data/format.ts';
import type { Recording } from '../data/recording.ts';
import { lines as sourceLines, type LineRow } from '../data/sums.ts';
import { go, route } from '../route.ts';
import { choice, kind, pattern, recording, source, sums, version } from '../store.ts';
import { Place, Share } from '../ui/parts.tsx';
import { rowsOf, useReady } from '../ui/ready.ts';
import { Table, type Column } from '../ui/table.tsx';
import { FunctionName, openSymbol, orDash } from './flame.tsx';

const BETWEEN = 600; // lines of a function that are shown

type Text = (file: string, line: number) => string | undefined;

/** Source text: the document's, or what a live recording's server can read. */
function useSource(r: Recording, only: number): Text {
  const live = source.live && !r.head.sources;
  const event = r.head.events[kind.value?.events[0] ?? 0]?.name ?? '';
  const query: Record<string, string> = { top: '300', event };
  if (only >= 0) query.function = r.symbolText(only);
  const view = useReady('lines', live ? query : null);
  return useMemo(() => {
    if (!live) return (file, line) => r.sourceOf(file, line);
    const known = new Map(rowsOf(view?.sections.lines).map((row) => [`${row.file}:${row.line}`, row.source]));
    return (file, line) => {
      const text = known.get(`${file}:${line}`);
      return typeof text === 'string' ? text : undefined;
    };
  }, [r, live, view]);
}

/** One function's lines, with those between that cost nothing. */
function between(rows: LineRow[], text: Text): LineRow[] {
  if (!rows.length || rows.some((row) => row.file !== rows[0].file)) return rows;
  const at = new Map(rows.map((row) => [row.line, row]));
  const first = Math.min(...at.keys());
  const last = Math.max(...at.keys());
  if (last - first > BETWEEN) return rows;
  const out: LineRow[] = [];
  for (let line = first - 3; line <= last + 3; line++) {
    const row = at.get(line);
    if (row) out.push(row);
    else if (text(rows[0].file, line) !== undefined) out.push({ ...rows[0], line, self: 0, total: 0 });
  }
  return out;
}

export function Lines() {
  version.value;
  const k = kind.value!;
  const s = sums.value!;
  const r = recording.value!;
  const { symbol } = route.value;
  const only = symbol >= 0 && symbol < r.symbolName.length ? symbol : -1;
  const text = useSource(r, only);
  const all = useMemo(() => sourceLines(r, choice.value!, only), [r, choice.value, only, version.value]);
  const expression = pattern.value;
  const found = expression ? all.filter((l) => expression.test(l.file) || expression.test(r.symbolText(l.symbol))) : all;
  const rows = only >= 0 ? between(found, text) : found;
  const written = rows.some((l) => text(l.file, l.line) !== undefined);
  const cells: Column<LineRow>[] = [
    { id: 'self', heading: 'Self', number: true, by: (l) => l.self, class: 'roomy-only', show: (l) => orDash(l.self, k.unit) },
    { id: 'self_percent', heading: 'Self %', number: true, by: (l) => l.self, class: 'bar',
      show: (l) => (l.self ? <Share part={l.self} whole={s.value}>{percent(l.self, s.value)}</Share> : '') },
    { id: 'total', heading: 'Total', number: true, by: (l) => l.total, class: 'roomy-only', show: (l) => (l.total ? formatValue(l.total, k.unit) : '') },
    { id: 'line', heading: 'Line', by: (l) => `${l.file}:${String(l.line).padStart(8, '0')}`, class: 'line',
      show: (l) => <span class="tail"><bdi><Place text={`${l.file}:${l.line}`} /></bdi></span> },
  ];
  if (written)
    cells.push({ id: 'source', heading: 'Source', class: 'fill source', show: (l) => <code>{(only < 0 ? text(l.file, l.line)?.trimStart() : text(l.file, l.line)) ?? ''}</code> });
  if (only < 0) {
    cells.push({ id: 'function', heading: 'Function', by: (l) => r.symbolText(l.symbol), class: written ? 'some-fill' : 'fill',
      show: (l) => <FunctionName symbol={l.symbol} name={r.symbolText(l.symbol)} /> });
    cells.push({ id: 'file', heading: 'File', by: (l) => l.file, class: 'wider-only module', show: (l) => <span class="tail" title={l.file}><bdi>{l.file}</bdi></span> });
  }
  return (
    <>
      {only >= 0 && (
        <p class="note-line">
          Lines of <strong class="mono">{r.symbolText(only)}</strong>{' '}
          <button type="button" onClick={() => go({ symbol: -1 })}>All functions</button>
          {!written && rows.length > 0 && <span class="faint">the source text was not there when the page was made</span>}
        </p>
      )}
      <Table key={only} caption="Source lines" rows={rows} keyOf={(l) => `${l.file}:${l.line}:${l.symbol}`} sort={only >= 0 && written ? 'line' : 'self'} up={only >= 0 && written}
        columns={cells} rowsFirst={only >= 0 ? BETWEEN + 10 : 100} open={only < 0 ? (l) => go({ symbol: l.symbol }) : (l) => openSymbol(l.symbol)}
        empty="No source lines are known here: the code has no debug information, or the search finds none." />
    </>
  );
}
