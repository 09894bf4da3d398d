// Who frees what whom allocated, by thread: as many threads as a table has room for.

const SIDE = 12;

export type Freed = Record<string, unknown>; // a row of the report: from, by, from_tid, by_tid, value, count

export interface Matrix {
  from: string[];
  by: string[];
  cell: Map<string, Freed>;
  most: number;
}

/** Threads by what passed between them and others, then by all they had: what each freed itself is no news. */
function ranked(rows: Freed[], of: (row: Freed) => string): string[] {
  const sums = new Map<string, [number, number]>();
  for (const row of rows) {
    const sum = sums.get(of(row)) ?? [0, 0];
    if (row.from_tid !== row.by_tid) sum[0] += Number(row.value);
    sum[1] += Number(row.value);
    sums.set(of(row), sum);
  }
  return [...sums].sort(([, a], [, b]) => b[0] - a[0] || b[1] - a[1]).map(([name]) => name);
}

/** The rest is left out. */
export function matrix(rows: Freed[]): Matrix {
  const names = new Map<string, string>();
  for (const row of rows) names.set(String(row.from_tid), String(row.from));
  const owner = (row: Freed) => names.get(String(row.by_tid)) ?? String(row.by);
  const from = ranked(rows, (row) => String(row.from)).slice(0, SIDE);
  const cell = new Map(rows.map((row) => [`${row.from}\0${owner(row)}`, row]));
  // Of those who free, whoever has most of these; in the order of the rows, so that what belongs together is near.
  const by = ranked(rows.filter((row) => from.includes(String(row.from))), owner).slice(0, SIDE);
  const row = (name: string) => from.findIndex((other) => other === name || cell.has(`${other}\0${name}`));
  by.sort((a, b) => row(a) - row(b));
  return { from, by, cell, most: rows.reduce((a, row) => Math.max(a, Number(row.value)), 0) };
}
