// A table that sorts by the heading that is clicked, shows its first rows, and more when asked.

import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { count } from '../data/format.ts';

export interface Column<T> {
  id: string;
  heading: string;
  hint?: string;
  silent?: boolean; // its heading is there for who hears the page
  number?: boolean;
  /** What it sorts by; absent: it does not. */
  by?: (row: T) => number | string;
  show: (row: T) => ComponentChildren;
  class?: string;
}

export function Table<T>(props: {
  caption: string;
  columns: Column<T>[];
  rows: T[];
  sort?: string;
  up?: boolean; // sorted upwards at first
  keyOf: (row: T) => string | number;
  open?: (row: T) => void;
  chosen?: string | number;
  rowsFirst?: number;
  empty?: string;
}) {
  const [sort, setSort] = useState({ id: props.sort ?? '', up: props.up ?? false });
  const [shown, setShown] = useState(props.rowsFirst ?? 100);
  const column = props.columns.find((c) => c.id === sort.id);
  const rows = useMemo(() => {
    const by = column?.by;
    if (!by) return props.rows;
    const sign = sort.up ? 1 : -1;
    return [...props.rows].sort((a, b) => {
      const x = by(a);
      const y = by(b);
      return sign * (x < y ? -1 : x > y ? 1 : 0);
    });
  }, [props.rows, sort, column?.id]);
  const [at, setAt] = useState(0); // of the rows, the one that Tab comes to
  const key = (e: KeyboardEvent, row: T) => {
    const tr = e.currentTarget as HTMLElement;
    const next = e.key === 'ArrowDown' ? tr.nextElementSibling : e.key === 'ArrowUp' ? tr.previousElementSibling : null;
    if (e.target !== tr || (e.key !== 'Enter' && !next)) return;
    e.preventDefault();
    if (next) (next as HTMLElement).focus();
    else props.open!(row);
  };
  const choose = (c: Column<T>) =>
    setSort((s) => ({ id: c.id, up: s.id === c.id ? !s.up : !c.number }));
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label={props.caption}>
      <table>
        <caption class="hidden">{props.caption}</caption>
        <thead>
          <tr>
            {props.columns.map((c) => (
              <th key={c.id} scope="col" class={`${c.number ? 'number' : ''} ${c.class ?? ''}`}
                aria-sort={sort.id === c.id ? (sort.up ? 'ascending' : 'descending') : undefined}>
                {c.by ? (
                  <button type="button" class="sort" title={c.hint} onClick={() => choose(c)}>
                    {c.heading}
                    <span class="sort-mark" aria-hidden="true">{sort.id === c.id ? (sort.up ? '↑' : '↓') : ''}</span>
                  </button>
                ) : (
                  <span class={c.silent ? 'hidden' : ''} title={c.hint}>{c.heading}</span>
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, shown).map((row, i) => {
            const id = props.keyOf(row);
            const opens = props.open && { tabIndex: i === at ? 0 : -1, onClick: () => props.open!(row),
              onFocus: () => setAt(i), onKeyDown: (e: KeyboardEvent) => key(e, row) };
            return (
              <tr key={id} class={`${props.open ? 'opens' : ''} ${id === props.chosen ? 'chosen' : ''}`} {...opens}>
                {props.columns.map((c) => (
                  <td key={c.id} data-column={c.id} data-value={c.number ? c.by?.(row) : undefined}
                    class={`${c.number ? 'number' : ''} ${c.class ?? ''}`}>{c.show(row)}</td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
      {!rows.length && <p class="table-empty">{props.empty ?? 'Nothing to show.'}</p>}
      {rows.length > shown && (
        <button type="button" class="more" onClick={() => setShown(shown * 4)}>
          Show more of {count(rows.length)} rows
        </button>
      )}
    </div>
  );
}
