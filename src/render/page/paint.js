/* Drawing: what is at least half a pixel wide and on screen, and nothing else. */

const ROW = 20;
const AXIS = chart ? 22 : 0;
const LEAST = 0.5; /* pixels */
const FONT = '12px system-ui, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif';

const canvas = document.getElementById('graph');
const stage = document.getElementById('stage');
const sheet = document.getElementById('sheet');
const pen = canvas.getContext('2d', { alpha: false });
const darkness = window.matchMedia('(prefers-color-scheme: dark)');

/* What is shown. x runs from `from` to `to` in the graph's unit. */
const view = {
  from: 0, to: places.extent, up: data.kind === 'flame', byModule: false,
  chosen: -1, over: -1, hits: null,
};

/* Hue, saturation, lightness by tone, for light and dark; shades vary the last. */
const LIGHT = [[30, 88, 70], [43, 88, 80], [209, 75, 75], [354, 75, 79], [134, 43, 70], [217, 12, 82],
  [217, 22, 90], [260, 62, 83]];
const DARK = [[29, 58, 35], [43, 52, 28], [210, 55, 35], [353, 42, 39], [136, 41, 29], [215, 10, 32],
  [215, 15, 20], [256, 34, 42]];
const hsl = (h, s, l) => `hsl(${h} ${s}% ${l}%)`;

/* Colours of changes, from what vanished to what is new. */
const CHANGES = [['#5990db', '#83aee6', '#aecbf0', '#d6e4f7', '#e4e6ea', '#fbd9d3', '#f7b4a8', '#f08b7a', '#e6604d'],
  ['#2566c2', '#2a5ba1', '#2f5080', '#34445a', '#363c45', '#54393a', '#733b3a', '#943a37', '#b43831']];
const changeColour = (box) => CHANGES[darkness.matches ? 1 : 0][changeOf(box) + 4];

const palette = { fill: [], tone: [], inlined: [], ink: '', paper: '', quiet: '', hit: '', faint: '', rest: '' };

function shadeOf(name) {
  let hash = 7;
  for (let i = 0; i < name.length; i++) hash = (hash * 31 + name.charCodeAt(i)) | 0;
  return ((hash >>> 3) % 7) - 3;
}

/* The heaviest modules get colours of their own, the others share one. */
const modules = (() => {
  const weight = new Map();
  for (let s = 0; s < symbols.name.length; s++) {
    if (symbols.tone[s] === GROUP) continue;
    weight.set(symbols.module[s], (weight.get(symbols.module[s]) || 0) + sums.self[s]);
  }
  const ranked = [...weight].sort((a, b) => b[1] - a[1]).slice(0, 10);
  return new Map(ranked.map(([module, value], rank) => [module, { rank, value }]));
})();

function moduleColour(module, shade) {
  const at = modules.get(module);
  const dark = darkness.matches;
  if (!at || !module) return hsl(217, dark ? 8 : 12, (dark ? 30 : 82) + shade);
  const hue = (28 + at.rank * 137.5) % 360;
  return dark ? hsl(hue, 38, 34 + shade) : hsl(hue, 62, 76 + shade);
}

function dye() {
  const dark = darkness.matches;
  const tones = dark ? DARK : LIGHT;
  palette.tone = tones.map(([h, s, l]) => hsl(h, s, l));
  palette.ink = dark ? '#f2f4f7' : '#1c2128';
  palette.paper = dark ? '#101317' : '#f6f7f9';
  palette.quiet = dark ? '#9aa5b3' : '#56606c';
  palette.rest = dark ? '#242a32' : '#e4e8ee';
  palette.hit = dark ? '#b5179e' : '#f582dd';
  palette.faint = dark ? '#20252c' : '#e8ebf0';
  palette.faintInk = dark ? '#8b96a4' : '#5f6975';
  palette.rule = dark ? '#2a313a' : '#dfe3e8';
  palette.fill = new Array(symbols.name.length);
  palette.inlined = new Array(symbols.name.length);
  for (let s = 0; s < symbols.name.length; s++) {
    const shade = shadeOf(nameOf(s)) * (dark ? 0.9 : 1.1);
    const colour = ([h, sat, l]) => hsl(h, sat, l + shade);
    palette.fill[s] = view.byModule && symbols.tone[s] !== GROUP
      ? moduleColour(symbols.module[s], shade) : colour(tones[symbols.tone[s]]);
    palette.inlined[s] = view.byModule || symbols.tone[s] !== NATIVE ? palette.fill[s] : colour(tones[INLINED]);
  }
}

/* Widths of characters, so that fitting a name costs no call into the browser. */
const glyphs = new Map();
function glyph(character) {
  let width = glyphs.get(character);
  if (width === undefined) {
    width = pen.measureText(character).width;
    glyphs.set(character, width);
  }
  return width;
}

function fits(name, pixels) {
  let used = 0;
  for (const character of name) {
    used += glyph(character);
    if (used > pixels) return false;
  }
  return true;
}

/* "ns::f<int>(char)" without what stands in angle brackets and parentheses. */
const shortNames = new Map();
function shortName(name) {
  let short = shortNames.get(name);
  if (short !== undefined) return short;
  short = name;
  if (!/^[[<(]|operator/.test(name)) {
    for (let before = ''; before !== short;) {
      before = short;
      short = short.replace(/<[^<>]*>|\([^()]*\)/g, '');
    }
    short = short.replace(/ const$/, '').trim() || name;
  }
  shortNames.set(name, short);
  return short;
}

function label(name, pixels) {
  if (fits(name, pixels)) return name;
  const short = shortName(name);
  if (fits(short, pixels)) return short;
  const dots = glyph('…');
  let used = 0, text = '';
  for (const character of short) {
    used += glyph(character);
    if (used + dots > pixels) break;
    text += character;
  }
  return text.length > 1 ? text + '…' : '';
}

/* Sizes, asked for once a drawing: asking for each box would cost more than drawing it. */
const room = { width: 1, height: 1, sheet: 1, scrolled: 0 };
function survey() {
  room.width = stage.clientWidth || 1;
  room.height = stage.clientHeight || 1;
  room.sheet = sheet.clientHeight;
  room.scrolled = stage.scrollTop;
}

function rowTop(row) {
  return AXIS + (view.up ? room.sheet - AXIS - (row + 1) * ROW : row * ROW) - room.scrolled;
}

function drawBox(i, x, width, y) {
  const symbol = boxes.symbol[i];
  const left = Math.max(x, -1), right = Math.min(x + width, room.width + 1);
  const seen = right - left;
  const faint = view.hits && !view.hits[symbol];
  const around = x < -0.5 && x + width > room.width + 0.5;
  pen.fillStyle = view.hits ? (faint ? palette.faint : palette.hit)
    : data.compares ? changeColour(i) : boxes.inlined[i] ? palette.inlined[symbol] : palette.fill[symbol];
  pen.globalAlpha = around && !faint && boxes.depth[i] ? 0.6 : 1;
  pen.fillRect(left, y, Math.max(seen - (seen > 2.5 ? 1 : 0), LEAST), ROW - 1);
  pen.globalAlpha = 1;
  if (seen > 26) {
    const text = label(nameOf(symbol), seen - 10);
    pen.fillStyle = faint ? palette.faintInk : palette.ink;
    if (text) pen.fillText(text, Math.max(left, 0) + 5, y + 14);
  }
}

function frameBox(i, colour, thickness) {
  if (i < 0) return;
  const scale = room.width / (view.to - view.from);
  const x = (places.start[i] - view.from) * scale, width = places.width[i] * scale;
  const left = Math.max(x, 1), right = Math.min(x + width, room.width - 1);
  if (right - left < LEAST) return;
  pen.strokeStyle = colour;
  pen.lineWidth = thickness;
  pen.strokeRect(left, rowTop(places.row[i]) + thickness / 2 - 0.5, Math.max(right - left - 1, 1), ROW - thickness);
}

/* Calls see(i, x, width) for every box that is wide enough; rest(i, x, width) for a run of
 * siblings that are not. `see` returns whether to go on to what stands on the box. */
function walk(see, rest) {
  const { start, width } = places;
  const { end, parent, self, n } = boxes;
  const edge = room.width;
  const scale = edge / (view.to - view.from);
  let drawn = -1; /* of the last sliver in a chart */
  for (let i = 0; i < n;) {
    const x = (start[i] - view.from) * scale, w = width[i] * scale, p = parent[i];
    if (x > edge) {
      i = p < 0 ? end[i] : end[p];
    } else if (x + w < 0) {
      i = end[i];
    } else if (w >= LEAST) {
      i = see(i, x, w) ? i + 1 : end[i];
    } else if (chart || p < 0) {
      if (x > drawn + 1) {
        rest(i, x, 1);
        drawn = x;
      }
      i = end[i];
    } else {
      /* Siblings stand widest first: none that follows is any wider. */
      rest(i, x, (start[p] + width[p] - self[p] - start[i]) * scale);
      i = end[p];
    }
  }
}

function draw() {
  const ratio = window.devicePixelRatio || 1;
  survey();
  const { width, height } = room;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = height + 'px';
  }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.font = FONT;
  pen.fillStyle = palette.paper;
  pen.fillRect(0, 0, width, height);
  walk((i, x, w) => {
    const y = rowTop(places.row[i]);
    if (y > -ROW && y < height) drawBox(i, x, w, y);
    return view.up ? y > -ROW : y < height;
  }, (i, x, w) => {
    const y = rowTop(places.row[i]);
    pen.fillStyle = palette.rest;
    if (y > -ROW && y < height) pen.fillRect(x, y, Math.max(w, LEAST), ROW - 1);
  });
  if (chart) drawAxis(width);
  frameBox(view.over, palette.ink, 1);
  frameBox(view.chosen, palette.ink, 2);
}

function drawAxis(width) {
  const span = view.to - view.from;
  const raw = span / Math.max(2, width / 110);
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = unit * [1, 2, 5, 10].find((m) => m * unit >= raw);
  pen.fillStyle = palette.paper;
  pen.fillRect(0, 0, width, AXIS - 2);
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
    const x = Math.round((at - view.from) / span * width);
    pen.fillStyle = palette.rule;
    pen.fillRect(x, 0, 1, AXIS - 2);
    pen.fillStyle = palette.quiet;
    pen.fillText(at ? duration(at) : '0', x + 4, 13);
  }
  pen.fillStyle = palette.rule;
  pen.fillRect(0, AXIS - 2, width, 1);
}

/* Makes the sheet as high as what can be seen at this zoom; in a flame the root stays in place. */
function measure() {
  let deepest = 0;
  survey();
  walk((i) => {
    if (places.row[i] > deepest) deepest = places.row[i];
    return true;
  }, () => {});
  const fromBottom = room.sheet - room.scrolled;
  sheet.style.height = Math.max(room.height, AXIS + (deepest + 1) * ROW + 4) + 'px';
  if (view.up) stage.scrollTop = sheet.clientHeight - fromBottom;
  survey();
}

/* The box under a point of the canvas, or -1. */
function boxAt(x, y) {
  survey();
  const scale = room.width / (view.to - view.from);
  const value = view.from + x / scale;
  let found = -1;
  if (y < AXIS) return found;
  for (let i = 0; i < boxes.n;) {
    const inside = value >= places.start[i] && value < places.start[i] + places.width[i];
    if (!inside) {
      i = boxes.end[i];
      continue;
    }
    const top = rowTop(places.row[i]);
    if (y >= top && y < top + ROW) {
      found = places.width[i] * scale >= LEAST ? i : -1;
      break;
    }
    i++;
  }
  return found;
}
