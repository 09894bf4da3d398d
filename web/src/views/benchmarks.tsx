// Distributions of a benchmark's runs: each run a dot, quartiles and median as a box, what is far
// outside marked.

import { count, percent } from '../data/format.ts';
import { distributions, isOutlier, metricsOf, showMetric, type BenchRun, type Distribution } from '../data/jobs.ts';
import { lineColour } from '../paint/colours.ts';
import { go, route } from '../route.ts';
import { Card, Segments } from '../ui/parts.tsx';
import { Table, type Column } from '../ui/table.tsx';
import { dark } from '../ui/theme.ts';

const WIDTH = 720;
const ROW = 54;
const LEFT = 120;
const RIGHT = 20;
const TICKS = 5;

export function Benchmarks(props: { runs: BenchRun[] }) {
  const metrics = metricsOf(props.runs);
  const metric = metrics.includes(route.value.metric) ? route.value.metric : metrics[0];
  if (!metric) return null;
  const all = distributions(props.runs, metric);
  const show = (v: number) => showMetric(metric, v);
  const first = all[0];
  const columns: Column<Distribution>[] = [
    { id: 'name', heading: 'Measured', by: (d) => d.name, class: 'fill', show: (d) => <span class="mono">{d.name}</span> },
    { id: 'runs', heading: 'Runs', number: true, by: (d) => d.values.length, show: (d) => count(d.values.length) },
    { id: 'median', heading: 'Median', number: true, by: (d) => d.median, show: (d) => show(d.median) },
    { id: 'beside', heading: `Beside ${first.name}`, number: true, by: (d) => d.median, show: (d) => beside(d, first) },
    { id: 'mean', heading: 'Mean', number: true, by: (d) => d.mean, show: (d) => show(d.mean) },
    { id: 'spread', heading: 'Spread', hint: 'Standard deviation, as a part of the mean', number: true, by: (d) => d.deviation, show: (d) => `± ${percent(d.deviation, d.mean)}` },
    { id: 'least', heading: 'Least', number: true, by: (d) => Math.min(...d.values), show: (d) => show(Math.min(...d.values)) },
    { id: 'most', heading: 'Most', number: true, by: (d) => Math.max(...d.values), show: (d) => show(Math.max(...d.values)) },
    { id: 'outliers', heading: 'Outliers', number: true, by: (d) => d.outliers, show: (d) => (d.outliers ? <span class="worse">{d.outliers}</span> : '0') },
  ];
  return (
    <Card title="Benchmarks" class="benchmarks">
      <div class="card-tools">
        {metrics.length > 8 ? (
          <label class="field"><span class="field-label">Measurement</span>
            <select value={metric} onChange={(e) => go({ metric: e.currentTarget.value })}>{metrics.map((m) => <option key={m}>{m}</option>)}</select>
          </label>
        ) : <Segments label="Measurement" chosen={metric} choose={(m) => go({ metric: m })} choices={metrics.map((id) => ({ id, label: id }))} />}
      </div>
      <Strips all={all} metric={metric} show={show} />
      <Table caption={`Distributions of ${metric}`} rows={all} keyOf={(d) => d.name} columns={columns} rowsFirst={30} />
    </Card>
  );
}

function beside(d: Distribution, first: Distribution) {
  if (d === first || !first.median) return <span class="faint">–</span>;
  const part = d.median / first.median - 1;
  return <span class={part > 0 ? 'worse' : part < 0 ? 'better' : ''}>{part > 0 ? '+' : part < 0 ? '−' : ''}{(100 * Math.abs(part)).toFixed(1)} %</span>;
}

function Strips(props: { all: Distribution[]; metric: string; show: (v: number) => string }) {
  const night = dark.value;
  const values = props.all.flatMap((d) => d.values);
  const least = Math.min(...values);
  const most = Math.max(...values);
  const room = (most - least || Math.abs(most) || 1) * 0.06;
  const x = (v: number) => LEFT + ((v - least + room) / (most - least + 2 * room)) * (WIDTH - LEFT - RIGHT);
  const height = props.all.length * ROW + 26;
  return (
    <div class="strips" tabIndex={0} role="region" aria-label={`Runs by ${props.metric}`}>
      <svg viewBox={`0 0 ${WIDTH} ${height}`} role="img"
        aria-label={props.all.map((d) => `${d.name}: median ${props.show(d.median)} of ${d.values.length} runs`).join('; ')}>
        {Array.from({ length: TICKS }, (_, i) => least + ((most - least) * i) / (TICKS - 1)).map((v, i) => (
          <g key={i} class="tick"><line x1={x(v)} x2={x(v)} y1={4} y2={height - 22} /><text x={x(v)} y={height - 8} text-anchor="middle">{props.show(v)}</text></g>
        ))}
        {props.all.map((d, row) => {
          const y = row * ROW + ROW / 2 + 4;
          const colour = lineColour(row, night);
          return (
            <g key={d.name}>
              <text class="strip-name" x={LEFT - 12} y={y + 4} text-anchor="end">{d.name.length > 15 ? `${d.name.slice(0, 14)}…` : d.name}<title>{d.name}</title></text>
              <rect x={x(d.low)} y={y - 13} width={Math.max(2, x(d.high) - x(d.low))} height={26} rx={4} style={{ fill: colour, opacity: 0.16 }} />
              <line x1={x(d.median)} x2={x(d.median)} y1={y - 15} y2={y + 15} style={{ stroke: colour, strokeWidth: 2 }} />
              {d.values.map((v, i) => (
                <circle key={i} class={isOutlier(d, v) ? 'outlier' : ''} cx={x(v)} cy={y + (((i * 7) % 11) - 5) * 1.9} r={3} style={{ fill: colour }}>
                  <title>{`${props.show(v)}${isOutlier(d, v) ? ', an outlier' : ''}`}</title>
                </circle>
              ))}
            </g>
          );
        })}
      </svg>
    </div>
  );
}
