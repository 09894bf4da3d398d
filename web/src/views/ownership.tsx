// Who frees what whom allocated, as a matrix of threads; and what resident memory was made of.

import { bytes, count, moment, plural } from '../data/format.ts';
import { matrix, type Matrix } from '../data/matrix.ts';
import { route } from '../route.ts';
import { recording, threadMask } from '../store.ts';
import { Card, Share } from '../ui/parts.tsx';
import { rowsOf, useReady, type TableRow } from '../ui/ready.ts';
import { StackTable } from './holders.tsx';

/** Threads that the filters leave; null: all. */
function chosenTids(): Set<number> | null {
  const mask = threadMask.value;
  return mask && new Set(recording.value!.head.threads.filter((_, i) => mask[i]).map((t) => t.tid));
}

export function Ownership() {
  const view = useReady('ownership');
  const chosen = chosenTids();
  const rows = rowsOf(view?.sections.ownership).filter((row) => !chosen || chosen.has(Number(row.from_tid)) || chosen.has(Number(row.by_tid)));
  const foreign = rows.filter((row) => row.from_tid !== row.by_tid);
  if (!view || !rows.length) return null;
  const stacks = rowsOf(view.sections.stacks);
  const whole = stacks.reduce((a, row) => a + Number(row.value), 0);
  return (
    <Card title="Ownership" class="ownership" aside={<span class="faint">{foreign.length
      ? `${bytes(foreign.reduce((a, row) => a + Number(row.value), 0))} were freed by another thread than had allocated them`
      : 'each thread freed what it had allocated itself'}</span>}>
      {foreign.length > 0 && <MatrixTable {...matrix(rows)} />}
      {stacks.length > 0 && (
        <>
          <h3 class="card-part">Allocated here, freed by another thread</h3>
          <StackTable caption="Allocated here, freed by another thread" rows={stacks} whole={whole} noun="Frees" empty="None." />
        </>
      )}
    </Card>
  );
}

function MatrixTable(props: Matrix) {
  const shade = (row: TableRow | undefined) => (row && props.most ? 8 + 62 * Math.sqrt(Number(row.value) / props.most) : 0);
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label="Who frees what whom allocated">
      <table class="matrix">
        <caption class="hidden">Bytes by the thread that allocated and the thread that freed</caption>
        <thead>
          <tr><th scope="col">allocated by ↓ · freed by →</th>{props.by.map((name) => <th key={name} scope="col" class="number">{name}</th>)}</tr>
        </thead>
        <tbody>
          {props.from.map((from) => (
            <tr key={from}>
              <th scope="row">{from}</th>
              {props.by.map((by) => {
                const row = props.cell.get(`${from}\0${by}`);
                return (
                  <td key={by} class={`number ${row && from !== by ? 'foreign' : ''}`} data-value={row ? Number(row.value) : 0}
                    style={row ? { '--shade': `${shade(row).toFixed(0)}%` } : undefined}
                    title={row ? plural(Number(row.count), 'block') : undefined}>
                    {row ? bytes(Number(row.value)) : <span class="faint">–</span>}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const PARTS: [string, string, string][] = [
  ['live', 'Live heap', 'What the program holds'],
  ['kept', 'Kept, stacks', 'What the allocator keeps, and stacks of threads'],
  ['file', 'Files', 'Code and mapped files'],
  ['shared', 'Shared', 'Shared memory'],
];

/** Resident memory when there was most of it, process by process, and what it was made of. */
export function Ledger() {
  const view = useReady('heap', { top: '40' });
  const { processes } = route.value;
  const pids = new Set(processes.map((p) => recording.value!.head.processes[p]?.pid));
  const rows = rowsOf(view?.sections.ledger).filter((row) => !processes.length || pids.has(Number(row.pid)));
  if (!rows.length) return null;
  const most = rows.reduce((a, row) => Math.max(a, Number(row.rss)), 0);
  const size = (v: unknown) => (v === null || v === undefined ? <span class="faint">–</span> : bytes(Number(v)));
  return (
    <Card title="Resident memory at its highest" aside={<span class="faint">what the kernel counts, and what of it is heap</span>}>
      <div class="table-scroll" tabIndex={0} role="region" aria-label="Resident memory">
        <table class="ledger">
          <caption class="hidden">Resident memory of each process at its highest</caption>
          <thead>
            <tr>
              <th scope="col" class="fill">Process</th>
              <th scope="col" class="number bar">Resident</th>
              {PARTS.map(([id, label, hint]) => <th key={id} scope="col" class="number" title={hint}>{label}</th>)}
              <th scope="col" class="number" title="Proportional: shared pages divided by who shares them">PSS</th>
              <th scope="col" class="number wide-only">After</th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, 40).map((row) => (
              <tr key={String(row.pid)} data-ledger={String(row.pid)}>
                <td class="fill mono">{String(row.process)}</td>
                <td class="number bar" data-column="rss" data-value={Number(row.rss)}><Share part={Number(row.rss)} whole={most}>{bytes(Number(row.rss))}</Share></td>
                {PARTS.map(([id]) => <td key={id} class="number">{size(row[id])}</td>)}
                <td class="number">{size(row.pss)}</td>
                <td class="number wide-only">{moment(Number(row.time ?? 0), 1e6)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > 40 && <p class="card-foot faint">{count(rows.length - 40)} smaller ones are left out.</p>}
    </Card>
  );
}
