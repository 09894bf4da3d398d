// Colours of boxes: by kind of code, by module, or by change. Each theme has its own; texts on
// boxes keep a contrast of 4.5 and more.

import { Kind, type Recording } from '../data/recording.ts';
import { isWait, NONE } from '../data/tree.ts';

export const KINDS = ['native', 'inlined', 'Python', 'kernel', 'JIT', 'no symbols', 'waiting', 'group', 'span'] as const;
export type KindName = (typeof KINDS)[number];

const SHADES = 4;
const HUES = 20;

export interface Palette {
  fills: string[]; // by colour number
  text: string;
  faint: string; // boxes too narrow to tell apart
  dimmed: string; // what a search did not find
  dimmedText: string;
  found: string;
  foundText: string;
}

// Hue, saturation and lightness of each kind.
const LIGHT: Record<KindName, [number, number, number]> = {
  native: [27, 82, 76],
  inlined: [43, 78, 77],
  Python: [211, 68, 80],
  kernel: [345, 55, 83],
  JIT: [160, 42, 74],
  'no symbols': [220, 8, 84],
  waiting: [262, 42, 85],
  group: [220, 12, 88],
  span: [188, 48, 78],
};

const DARK: Record<KindName, [number, number, number]> = {
  native: [24, 48, 33],
  inlined: [42, 44, 30],
  Python: [212, 46, 36],
  kernel: [345, 34, 36],
  JIT: [164, 36, 27],
  'no symbols': [220, 8, 32],
  waiting: [262, 28, 38],
  group: [220, 12, 26],
  span: [190, 44, 30],
};

function hsl(h: number, s: number, l: number): string {
  return `hsl(${h} ${s}% ${l}%)`;
}

const cache = new Map<boolean, Palette>();

/** Kinds first (SHADES of each), then HUES for modules, then nine steps of change. */
export function palette(dark: boolean): Palette {
  const known = cache.get(dark);
  if (known) return known;
  const fills: string[] = [];
  for (const kind of KINDS) {
    const [h, s, l] = (dark ? DARK : LIGHT)[kind];
    for (let i = 0; i < SHADES; i++) fills.push(hsl(h + (i - 1.5) * 3, s, l + (i - 1.5) * (dark ? 1.6 : 2.2)));
  }
  for (let i = 0; i < HUES; i++) {
    const h = (i * 360) / HUES;
    fills.push(dark ? hsl(h, 36, i % 2 ? 32 : 36) : hsl(h, 58, i % 2 ? 78 : 83));
  }
  for (let step = -4; step <= 4; step++) {
    const strength = Math.abs(step) / 4;
    const hue = step < 0 ? 214 : 8;
    if (!step) fills.push(dark ? 'hsl(220 8% 30%)' : 'hsl(220 10% 90%)');
    else fills.push(dark ? hsl(hue, 25 + 40 * strength, 32 + 6 * strength) : hsl(hue, 50 + 35 * strength, 90 - 18 * strength));
  }
  const made: Palette = dark
    ? { fills, text: '#f4f5f7', faint: '#3a4049', dimmed: '#23272e', dimmedText: '#8d95a3', found: '#a8459f', foundText: '#ffffff' }
    : { fills, text: '#1c2026', faint: '#dfe2e7', dimmed: '#eef0f3', dimmedText: '#6b7280', found: '#d9a8ee', foundText: '#1c2026' };
  cache.set(dark, made);
  return made;
}

export function textHash(text: string): number {
  let h = 2166136261;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  return (h ^ (h >>> 15)) >>> 0;
}

export function kindName(r: Recording, symbol: number, inlined = false): KindName {
  if (symbol === NONE) return 'group';
  if (isWait(symbol)) return 'waiting';
  if (symbol >= r.symbolName.length) return 'group';
  switch (r.kindOf(symbol)) {
    case Kind.Kernel:
    case Kind.Vdso:
      return 'kernel';
    case Kind.Python:
      return 'Python';
    case Kind.Jit:
      return 'JIT';
    case Kind.Span:
      return 'span';
    case Kind.Elf:
      if (r.symbolNameless.data[symbol]) return 'no symbols';
      return inlined ? 'inlined' : 'native';
    default:
      return 'no symbols';
  }
}

/** Colour number of a box, by kind or by module. */
export class Painter {
  private known = new Map<number, number>();

  constructor(private readonly r: Recording, private readonly by: 'kind' | 'module') {}

  colour(symbol: number, inlined: boolean): number {
    const key = symbol * 2 + (inlined ? 1 : 0);
    let colour = this.known.get(key);
    if (colour === undefined) this.known.set(key, (colour = this.choose(symbol, inlined)));
    return colour;
  }

  private choose(symbol: number, inlined: boolean): number {
    const kind = kindName(this.r, symbol, inlined);
    if (this.by === 'module' && symbol < this.r.symbolName.length) {
      const module = this.r.moduleOf(symbol);
      return moduleColour(module < 0 ? '' : this.r.moduleName[module]);
    }
    const shade = symbol < this.r.symbolName.length ? textHash(this.r.symbolText(symbol)) % SHADES : 1;
    return KINDS.indexOf(kind) * SHADES + shade;
  }
}

export function moduleColour(name: string): number {
  return KINDS.length * SHADES + (textHash(name) % HUES);
}

export function kindFill(kind: KindName, dark: boolean): string {
  return palette(dark).fills[KINDS.indexOf(kind) * SHADES + 1];
}

/** Colour number of a change: blue has shrunk, red has grown. */
export function changeColour(before: number, after: number): number {
  const larger = Math.max(before, after);
  const by = larger ? (after - before) / larger : 0;
  let level = 0;
  for (const step of [0.02, 0.1, 0.3, 0.6]) if (Math.abs(by) >= step) level++;
  return KINDS.length * SHADES + HUES + 4 + (by < 0 ? -level : level);
}

/** Lines of curves, apart from each other also for who sees few colours. */
export function lineColour(index: number, dark: boolean): string {
  const light = ['#2f6fde', '#c2571a', '#1f8a5b', '#8a4fd0', '#b03060', '#5b7f1d', '#0f7f8c', '#8c6a1f'];
  const night = ['#79a8f5', '#f0a06a', '#5fc796', '#bf96f0', '#f08aa8', '#a7c95f', '#57c3cf', '#d9b65c'];
  return (dark ? night : light)[index % light.length];
}
