/* The recording's boxes, as columns: read from the page's data, completed by one walk.
 * Box i stands before everything on it; end[i] is the index after all of that. */
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
document.getElementById('data').remove();

const chart = data.kind === 'flamechart';
const symbols = data.symbols;
const nameOf = (symbol) => data.strings[symbols.name[symbol]];
const moduleOf = (symbol) => data.strings[symbols.module[symbol]];
const fileOf = (symbol) => data.strings[symbols.file[symbol]];

const boxes = (() => {
  const n = data.boxes.depth.length;
  const depth = Uint32Array.from(data.boxes.depth);
  const symbol = Uint32Array.from(data.boxes.symbol);
  const line = Uint32Array.from(data.boxes.line);
  const selfCount = Float64Array.from(data.boxes.count);
  const self = Float64Array.from(data.boxes.self, (value) => value * data.scale);
  const total = Float64Array.from(self);
  const count = Float64Array.from(selfCount);
  const parent = new Int32Array(n).fill(-1);
  const end = new Uint32Array(n);
  const inlined = new Uint8Array(n);
  for (const i of data.boxes.inlined) inlined[i] = 1;
  const open = [];
  for (let i = 0; i < n; i++) {
    while (open.length > depth[i]) end[open.pop()] = i;
    if (open.length) parent[i] = open[open.length - 1];
    open.push(i);
  }
  while (open.length) end[open.pop()] = n;
  /* What was too narrow to keep still belongs to what it stood on. */
  const rest = data.boxes.rest || [];
  for (let k = 0; k < rest.length; k += 3) {
    total[rest[k]] += rest[k + 1];
    count[rest[k]] += rest[k + 2];
  }
  for (let i = n - 1; i > 0; i--) {
    if (parent[i] < 0) continue;
    total[parent[i]] += total[i];
    count[parent[i]] += count[i];
  }
  /* Of two profiles, the totals of each. */
  const before = data.compares ? Float64Array.from(data.boxes.before) : null;
  const after = data.compares ? Float64Array.from(data.boxes.after) : null;
  return { before, after, n, depth, symbol, line, self, selfCount, total, count, parent, end, inlined };
})();

/* Where boxes stand: start and width in the unit of x, row from the root or the first lane. */
const places = (() => {
  const { n, depth, parent, total } = boxes;
  const start = new Float64Array(n);
  const width = chart ? Float64Array.from(data.boxes.width) : total;
  const row = new Uint32Array(n);
  let base = 0, deepest = 0; /* rows of the lanes so far */
  for (let i = 0; i < n; i++) {
    if (chart) {
      start[i] = data.boxes.start[i];
      if (depth[i] === 0) base = i ? deepest + 2 : 0;
    }
    row[i] = base + depth[i];
    if (row[i] > deepest) deepest = row[i];
  }
  if (!chart) {
    const next = new Float64Array(n);
    for (let i = 1; i < n; i++) {
      const p = parent[i];
      start[i] = start[p] + next[p];
      next[p] += total[i];
    }
  }
  return { start, width, row, extent: chart ? data.extent : total[0] || 1 };
})();
data.boxes = null;

/* Self and total of every symbol over the whole graph; recursion counts once. */
const sums = (() => {
  const m = symbols.name.length;
  const self = new Float64Array(m), total = new Float64Array(m), spots = new Uint32Array(m);
  const until = new Uint32Array(m);
  for (let i = 0; i < boxes.n; i++) {
    const s = boxes.symbol[i];
    self[s] += boxes.self[i];
    spots[s]++;
    if (i < until[s]) continue;
    total[s] += boxes.total[i];
    until[s] = boxes.end[i];
  }
  return { self, total, places: spots };
})();

const whole = chart ? data.value : boxes.total[0] || 1;
const GROUP = data.tones.indexOf('group');
const INLINED = data.tones.indexOf('inlined');
const NATIVE = data.tones.indexOf('native');

function toneOf(box) {
  const tone = symbols.tone[boxes.symbol[box]];
  return boxes.inlined[box] && tone === NATIVE ? INLINED : tone;
}

const counts = new Intl.NumberFormat('en');

function duration(ns) {
  if (ns >= 3600e9) return (ns / 3600e9).toFixed(2) + ' h';
  if (ns >= 600e9) return (ns / 60e9).toFixed(1) + ' min';
  if (ns >= 1e9) return (ns / 1e9).toFixed(2) + ' s';
  if (ns >= 1e6) return (ns / 1e6).toFixed(1) + ' ms';
  if (ns >= 1e3) return (ns / 1e3).toFixed(1) + ' µs';
  return ns > 0 ? Math.round(ns) + ' ns' : '0 s';
}

function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    unit++;
  }
  return value.toFixed(unit ? 1 : 0) + ' ' + units[unit];
}

function amount(value) {
  return data.unit === 'ns' ? duration(value) : data.unit === 'bytes' ? bytes(value) : counts.format(value);
}

function percent(part, all) {
  const p = all ? 100 * part / all : 0;
  if (p > 0 && p < 0.01) return '<0.01 %';
  return p.toFixed(p < 10 ? 2 : 1) + ' %';
}

/* How a box changed, from -4 (gone) to 4 (new); and in words. */
function changeOf(box) {
  const a = boxes.before[box], b = boxes.after[box];
  const by = a || b ? (b - a) / Math.max(a, b) : 0;
  const level = [0.02, 0.1, 0.3, 0.6].filter((step) => Math.abs(by) >= step).length;
  return by < 0 ? -level : level;
}

function change(box) {
  const a = boxes.before[box], b = boxes.after[box];
  if (!a) return 'new';
  return b ? (b >= a ? '+' : '−') + Math.abs(100 * (b - a) / a).toFixed(1) + ' %' : 'gone';
}

/* What stacks held at a peak is not counted in samples or blocks. */
const counted = data.samples > 0 || !data.value;

function plural(n, word) {
  return counts.format(n) + ' ' + word + (n === 1 ? '' : 's');
}

/* "src/app.c:12": the line of all samples if there is one, else where the function starts. */
function placeOf(box) {
  const symbol = boxes.symbol[box];
  const file = fileOf(symbol);
  const line = boxes.line[box] || symbols.line[symbol];
  return file && line ? file + ':' + line : file;
}

/* Text as it was typed if it is a regular expression, else literally; lower case finds both. */
function matcher(text) {
  const flags = /[A-Z]/.test(text) ? '' : 'i';
  try {
    return { test: new RegExp(text, flags), literal: false };
  } catch {
    return { test: new RegExp(text.replace(/[^\w\s]/g, '\\$&'), flags), literal: true };
  }
}

/* Which symbols match, how many boxes, and what they cost together (nested ones once). */
function find(text) {
  const { test, literal } = matcher(text);
  const hit = Uint8Array.from(symbols.name, (name) => (test.test(data.strings[name]) ? 1 : 0));
  let value = 0, found = 0, until = 0;
  for (let i = 0; i < boxes.n; i++) {
    if (!hit[boxes.symbol[i]]) continue;
    found++;
    if (i < until) continue;
    value += boxes.total[i];
    until = boxes.end[i];
  }
  return { hit, value, found, literal };
}
