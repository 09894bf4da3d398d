// Counters: every event that was recorded, by function, beside each other.

import { useMemo, useState } from 'preact/hooks';
import { percent, value as formatValue } from '../data/format.ts';
import { functions, sum, type FunctionRow } from '../data/sums.ts';
import type { ValueKind } from '../data/values.ts';
import { route } from '../route.ts';
import { choiceOf, held, kinds, pattern, recording, threadMask, version } from '../store.ts';
import { Empty, Segments, Share } from '../ui/parts.tsx';
import { Table, type Column } from '../ui/table.tsx';
import { FunctionName, openSymbol } from './flame.tsx';

interface Row {
  symbol: number;
  name: string;
  cells: (FunctionRow | undefined)[];
}

function collect(list: ValueKind[], range: [number, number] | null, mask: Uint8Array | null): { rows: Row[]; wholes: number[] } {
  const rows = new Map<number, Row>();
  const wholes = list.map((k, i) => {
    const sums = sum(held.value!.tree, choiceOf(k, recording.value!, mask, range));
    for (const f of functions(sums)) {
      let row = rows.get(f.symbol);
      if (!row) rows.set(f.symbol, (row = { symbol: f.symbol, name: f.name, cells: [] }));
      row.cells[i] = f;
    }
    return sums.value;
  });
  return { rows: [...rows.values()], wholes };
}

/** Pairs of events whose quotient says something. */
const RATIOS: [string, string, string][] = [
  ['instructions', 'cycles', 'IPC'],
  ['cache-misses', 'cache-references', 'Cache misses'],
  ['branch-misses', 'branches', 'Branch misses'],
];

/** Of memory the sums that say something of a function; moments of it are looked at in the view of memory. */
function hasColumn(k: ValueKind, all: ValueKind[]): boolean {
  if (k.events.length !== 1) return false;
  if (k.id === 'heap:peak') return !all.some((other) => other.id === 'heap:tree-peak');
  return k.group !== 'Memory' || ['heap:allocated', 'heap:tree-peak', 'heap:live', 'heap:temporary', 'inuse_space', 'alloc_space'].includes(k.id);
}

/** CPU time, what was counted, memory, and what was waited for. */
function order(k: ValueKind): number {
  return k.id === 'cpu' ? 0 : k.group === 'Events' ? 1 : k.group === 'Memory' ? 2 : 3;
}

export function Counters() {
  version.value;
  const [asked, setPart] = useState<'self' | 'total' | null>(null);
  const list = useMemo(() => kinds.value.filter((k, _, all) => hasColumn(k, all)).sort((a, b) => order(a) - order(b)), [kinds.value]);
  // Memory is asked for deep below the functions that spend time: by self, no row would have both.
  const part = asked ?? (list.some((k) => k.group === 'Memory') && list.length > 1 ? 'total' : 'self');
  const { range } = route.value;
  const mask = threadMask.value;
  const { rows, wholes } = useMemo(() => collect(list, range, mask), [kinds.value, range, mask]);
  const expression = pattern.value;
  if (!rows.length) return <div class="view"><Empty title="Nothing was counted">No event has samples in what is chosen; <code class="mono">sonde run -e page-faults,cycles,cache-misses</code> records events beside each other.</Empty></div>;
  const of = (row: Row, i: number) => row.cells[i]?.[part] ?? 0;
  const shown = rows.filter((row) => (!expression || expression.test(row.name)) && list.some((_, i) => of(row, i) > 0));
  const columns: Column<Row>[] = [{ id: 'name', heading: 'Function', by: (row) => row.name, class: 'first',
    show: (row) => <FunctionName symbol={row.symbol} name={row.name} /> }];
  columns.push(...list.map((k, i): Column<Row> => ({
    id: k.id,
    heading: k.label,
    hint: k.hint,
    number: true,
    class: 'bar',
    by: (row) => of(row, i),
    show: (row) => of(row, i)
      ? <Share part={of(row, i)} whole={wholes[i]}><span title={percent(of(row, i), wholes[i])}>{formatValue(of(row, i), k.unit)}</span></Share>
      : <span class="faint">–</span>,
  })));
  for (const [above, below, name] of RATIOS) {
    const a = list.findIndex((k) => k.id === above);
    const b = list.findIndex((k) => k.id === below);
    if (a < 0 || b < 0) continue;
    const ratio = (row: Row) => (of(row, b) ? of(row, a) / of(row, b) : 0);
    columns.push({ id: name, heading: name, hint: `${above} / ${below}`, number: true, by: ratio,
      show: (row) => (of(row, b) ? (name === 'IPC' ? ratio(row).toFixed(2) : percent(of(row, a), of(row, b))) : '–') });
  }
  return (
    <div class="view counters">
      <div class="toolbar">
        <Segments label="Part" chosen={part} choose={setPart}
          choices={[{ id: 'self', label: 'Self', hint: 'In the function itself' }, { id: 'total', label: 'Total', hint: 'With everything that it called' }]} />
        <span class="faint">{list.length === 1
          ? <>One event was recorded; <code class="mono">sonde run -e cpu,page-faults,cache-misses</code> records more, side by side.</>
          : part === 'total' ? 'Each column is an event, with everything that a function called; bars are shares of its whole.' : 'Each column is an event, in the function itself; bars are shares of its whole.'}</span>
      </div>
      <Table caption="Events by function" rows={shown} keyOf={(row) => row.symbol} sort={list[0].id} columns={columns}
        open={(row) => openSymbol(row.symbol)} empty="No function has such a name." />
    </div>
  );
}
