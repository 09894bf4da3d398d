// Numbers for people, as `sonde report` prints them.

export function count(n: number): string {
  return Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, '\u2009');
}

/** Three of them, also of what is rounded up to one more. */
function digits(v: number): string {
  const a = Math.abs(v);
  return v.toFixed(a >= 99.95 || a === 0 ? 0 : a >= 9.995 ? 1 : 2);
}

export function duration(ns: number): string {
  const a = Math.abs(ns);
  if (!a) return '0 s';
  if (a < 999.5) return `${Math.round(ns)} ns`;
  if (a < 999.5e3) return `${digits(ns / 1e3)} µs`;
  if (a < 999.5e6) return `${digits(ns / 1e6)} ms`;
  if (a < 120e9) return `${digits(ns / 1e9)} s`;
  const s = Math.round(a / 1e9);
  const sign = ns < 0 ? '-' : '';
  const two = (v: number) => v.toString().padStart(2, '0');
  if (s < 3600) return `${sign}${Math.floor(s / 60)} min ${two(s % 60)} s`;
  return `${sign}${Math.floor(s / 3600)} h ${two(Math.floor(s / 60) % 60)} min`;
}

export function bytes(n: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let v = n;
  let unit = 0;
  while (Math.abs(v) >= 1023.5 && unit < units.length - 1) {
    v /= 1024;
    unit++;
  }
  return unit ? `${digits(v)} ${units[unit]}` : `${count(n)} B`;
}

export function value(v: number, unit: string): string {
  return unit === 'ns' ? duration(v) : unit === 'bytes' ? bytes(v) : count(v);
}

/** With its sign, also when it grows. */
export function change(v: number, unit: string): string {
  return v > 0 ? `+${value(v, unit)}` : v < 0 ? `−${value(-v, unit)}` : value(0, unit);
}

export function percent(part: number, whole: number): string {
  const p = whole ? (100 * part) / whole : 0;
  if (p > 0 && p < 0.01) return '<0.01 %';
  return `${p.toFixed(p < 10 ? 2 : 1)} %`;
}

export function capital(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}

/** How much more or less it has become. */
export function percentChange(before: number, after: number): string {
  const p = before ? (100 * (after - before)) / before : 0;
  return `${p > 0 ? '+' : p < 0 ? '−' : ''}${Math.abs(p).toFixed(Math.abs(p) < 10 ? 1 : 0)} %`;
}

/** "2:30 min", or "1:02:30 h"; where marks are whole minutes "2 min" and "1:02 h". */
function clock(ns: number, step: number, hours: boolean): string {
  const s = Math.round(ns / 1e9);
  const two = (v: number) => v.toString().padStart(2, '0');
  const seconds = step % 60e9 ? `:${two(s % 60)}` : '';
  if (!hours) return `${Math.floor(s / 60)}${seconds} min`;
  return `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}${seconds} h`;
}

/** Distances between marks of time, in seconds: round ones in the unit that they are told in. */
export const TIME_STEPS = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1].flatMap((unit) => [1, 2, 5].map((n) => n * unit))
  .concat([1, 2, 5, 10, 20, 30], [1, 2, 5, 10, 20, 30].map((n) => n * 60), [1, 2, 5, 10, 24].map((n) => n * 3600), [2, 5, 10, 20, 50, 100].map((n) => n * 86400));

/** A time on an axis, as exact as the distance between two marks asks for, in the unit that its last one has. */
export function moment(ns: number, step: number, last = ns): string {
  if (last >= 120e9 && step >= 1e9) return clock(ns, Math.round(step), last >= 7200e9);
  const even = (unit: number) => Math.abs(step / unit - Math.round(step / unit)) < 1e-6;
  if (even(1e9)) return `${(ns / 1e9).toFixed(0)} s`;
  const places = [1e8, 1e7, 1e6].findIndex(even) + 1 || 4;
  if (step >= 1e6) return last >= 1e9 ? `${(ns / 1e9).toFixed(places)} s` : `${(ns / 1e6).toFixed(even(1e6) ? 0 : 1)} ms`;
  if (last >= 1e9) return `${(ns / 1e9).toFixed(6)} s`;
  return last >= 1e6 ? `${(ns / 1e6).toFixed(3)} ms` : `${(ns / 1e3).toFixed(0)} µs`;
}

/** Distances between marks of bytes: round in the unit that the highest has; below it parts that its multiples are made of. */
export function byteSteps(high: number): number[] {
  const unit = 1024 ** Math.max(0, Math.floor(Math.log2(Math.max(1, high)) / 10));
  const parts = Array.from({ length: 20 }, (_, i) => unit / 2 ** (20 - i)).filter((step) => step >= 1);
  return parts.concat([1, 2, 4, 5, 10, 20, 40, 50, 100, 200, 400, 500].map((n) => n * unit));
}

/** Marks of an axis: without decimals where none of those in the same unit needs any. */
export function ticks(list: string[]): string[] {
  const needs = new Set(list.filter((t) => /\.0*[1-9]/.test(t)).map((t) => t.split(' ')[1]));
  return list.map((t) => (needs.has(t.split(' ')[1]) ? t : t.replace(/\.0+( |$)/, '$1')));
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** Date and time of this place, of ms since 1970. */
export function when(ms: number): string {
  const d = new Date(ms);
  const two = (n: number) => String(n).padStart(2, '0');
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}
