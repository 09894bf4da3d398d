// Tables that come ready made: out of the document, or of a live recording from its server, where they
// are asked for again every few steps.

import { useEffect, useState } from 'preact/hooks';
import type { TableName, TableSection, TableView } from '../data/decode.ts';
import { recording, source, version } from '../store.ts';

const STEPS = 4;

export type TableRow = Record<string, unknown>;

export function useReady(name: TableName, query: Record<string, string> | null = {}): TableView | null {
  const own = recording.value!.head.tables?.[name] ?? null;
  const key = query ? JSON.stringify(query) : '';
  const [come, setCome] = useState<{ key: string; view: TableView } | null>(null);
  const step = Math.floor(version.value / STEPS);
  useEffect(() => {
    if (own || !query || !source.view) return;
    let gone = false;
    source.view(name, query).then((view) => !gone && setCome({ key, view }), () => undefined);
    return () => void (gone = true);
  }, [own, name, key, step]);
  return own ?? (come?.key === key ? come.view : null);
}

export function rowsOf(section: TableSection | undefined): TableRow[] {
  return (section?.rows ?? []).filter((row) => !row.rest);
}
