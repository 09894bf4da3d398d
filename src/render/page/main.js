/* What people do with the graph: zoom, search, choose, turn over. */

const calm = window.matchMedia('(prefers-reduced-motion: reduce)');
const past = []; /* views to go back to */
const HOME = chart ? -1 : 0; /* what everything is called: no single lane of a chart */
let motion = 0, queued = false, zoomed = HOME;

function redraw() {
  if (queued) return;
  queued = true;
  requestAnimationFrame(() => {
    queued = false;
    draw();
  });
}

function settle() {
  measure();
  byId('reset').disabled = view.from <= 0 && view.to >= places.extent;
  byId('back').disabled = past.length === 0;
  redraw();
}

/* Glides to [from, to]; the graph's height follows at the end. */
function glide(from, to) {
  const least = places.extent * 1e-9 || 1e-9;
  if (to - from < least) to = from + least;
  const first = view.from, last = view.to, began = performance.now();
  cancelAnimationFrame(motion);
  const step = (now) => {
    const t = calm.matches ? 1 : Math.min(1, Math.max(0, (now - began) / 200));
    const e = 1 - (1 - t) ** 3;
    view.from = t === 1 ? from : first + (from - first) * e;
    view.to = t === 1 ? to : last + (to - last) * e;
    draw();
    if (t < 1) motion = requestAnimationFrame(step);
    else settle();
  };
  step(began);
}

function jump(from, to) {
  const span = Math.max(Math.min(to - from, places.extent), places.extent * 1e-9);
  view.from = Math.max(0, Math.min(from, places.extent - span));
  view.to = view.from + span;
  settle();
}

function zoomTo(box, forget) {
  if (!forget && box !== zoomed) past.push({ box: zoomed, from: view.from, to: view.to });
  zoomed = box;
  showCrumbs(box);
  choose(boxes.depth[box] === 0 && !chart ? -1 : box);
  byId('tip').hidden = true;
  glide(places.start[box], places.start[box] + places.width[box]);
}

function goBack() {
  const last = past.pop();
  if (!last) return reset();
  zoomed = last.box;
  showCrumbs(zoomed);
  glide(last.from, last.to);
}

function reset() {
  past.length = 0;
  zoomed = HOME;
  showCrumbs(HOME);
  choose(-1);
  glide(0, places.extent);
}

function choose(box) {
  view.chosen = box;
  showPanel();
  speak(box);
  redraw();
}

/* Scrolls and, if need be, zooms so that the chosen box can be seen. */
function reveal(box) {
  survey();
  const scale = room.width / (view.to - view.from);
  const start = places.start[box], end = start + places.width[box];
  if (end < view.from || start > view.to || (end - start) * scale < 3) {
    const span = Math.max(end - start, (view.to - view.from) / 20);
    jump(start + (end - start) / 2 - span / 2, start + (end - start) / 2 + span / 2);
  }
  const top = rowTop(places.row[box]);
  if (top < AXIS) stage.scrollTop += top - AXIS - ROW;
  else if (top > stage.clientHeight - ROW) stage.scrollTop += top - stage.clientHeight + 2 * ROW;
}

function search() {
  const input = byId('search'), text = input.value, shown = byId('matched');
  shown.replaceChildren();
  input.setAttribute('aria-invalid', 'false');
  view.hits = null;
  if (text) {
    const { hit, value, found, literal } = find(text);
    view.hits = hit;
    shown.append(element('b', { textContent: percent(value, whole) }),
      ` in ${plural(found, 'frame')}${literal ? ', taken literally' : ''}`);
    input.setAttribute('aria-invalid', String(literal));
  }
  redraw();
}

function searchFor(text) {
  byId('search').value = text;
  search();
}

function nextMatch(step) {
  if (!view.hits) return;
  for (let k = 1; k <= boxes.n; k++) {
    const i = (((view.chosen + step * k) % boxes.n) + boxes.n) % boxes.n;
    if (!view.hits[boxes.symbol[i]]) continue;
    choose(i);
    reveal(i);
    return;
  }
}

function turn(up) {
  if (chart) up = false;
  view.up = up;
  byId('up').setAttribute('aria-pressed', String(up));
  byId('down').setAttribute('aria-pressed', String(!up));
  measure();
  stage.scrollTop = up ? sheet.clientHeight : 0;
  redraw();
}

function colour(byModule) {
  view.byModule = byModule;
  byId('by-kind').setAttribute('aria-pressed', String(!byModule));
  byId('by-module').setAttribute('aria-pressed', String(byModule));
  dye();
  showLegend();
  showPanel();
  redraw();
}

function togglePanel() {
  const panel = byId('panel');
  panel.hidden = !panel.hidden;
  byId('panel-open').setAttribute('aria-pressed', String(!panel.hidden));
  showPanel();
  settle();
}

/* Neighbours in the walk: siblings, the heaviest callee (the first box on this one), the caller. */
function sibling(box, step) {
  const p = boxes.parent[box];
  if (step > 0) {
    const next = boxes.end[box];
    return next < (p < 0 ? boxes.n : boxes.end[p]) ? next : -1;
  }
  let last = -1;
  for (let c = p < 0 ? 0 : p + 1; c < box; c = boxes.end[c]) last = c;
  return last;
}

function child(box) {
  let best = -1;
  for (let c = box + 1; c < boxes.end[box]; c = boxes.end[c]) {
    if (best < 0 || places.width[c] > places.width[best]) best = c;
    if (!chart) break;
  }
  return best;
}

function move(key) {
  const box = view.chosen;
  let to = 0;
  if (box >= 0) {
    const deeper = (key === 'ArrowUp') === view.up;
    if (key === 'ArrowLeft') to = sibling(box, -1);
    else if (key === 'ArrowRight') to = sibling(box, 1);
    else to = deeper ? child(box) : boxes.parent[box];
  }
  if (to < 0) return;
  choose(to);
  reveal(to);
}

function around(x, factor) {
  const span = view.to - view.from, at = view.from + span * x / room.width;
  jump(at - (at - view.from) * factor, at + (view.to - at) * factor);
}

function onWheel(event) {
  const scrolls = sheet.clientHeight > stage.clientHeight + 1;
  const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
  const pixels = event.deltaMode === 1 ? 18 : 1;
  if (sideways) {
    const by = (event.deltaX || event.deltaY) * pixels * (view.to - view.from) / room.width;
    jump(view.from + by, view.to + by);
  } else if (event.ctrlKey || event.metaKey || !scrolls) {
    around(event.clientX - canvas.getBoundingClientRect().left, Math.exp(event.deltaY * pixels * 0.0022));
  } else {
    return;
  }
  event.preventDefault();
}

let grip = null; /* where a drag began */

function onPoint(event) {
  const edge = canvas.getBoundingClientRect();
  const x = event.clientX - edge.left, y = event.clientY - edge.top;
  if (grip && Math.abs(event.clientX - grip.x) > 4) {
    const by = (grip.x - event.clientX) * (grip.to - grip.from) / room.width;
    grip.moved = true;
    canvas.classList.add('drag');
    showTip(-1);
    jump(grip.from + by, grip.to + by);
    return;
  }
  const box = boxAt(x, y);
  if (box !== view.over) {
    view.over = box;
    canvas.classList.toggle('over', box >= 0);
    redraw();
  }
  showTip(box, event.clientX, event.clientY);
}

function onRelease(event) {
  const moved = grip && grip.moved;
  grip = null;
  canvas.classList.remove('drag');
  if (moved || event.button !== 0) return;
  const edge = canvas.getBoundingClientRect();
  const box = boxAt(event.clientX - edge.left, event.clientY - edge.top);
  if (box >= 0) zoomTo(box);
}

const keys = {
  Enter: () => view.chosen >= 0 && zoomTo(view.chosen),
  Escape: () => (byId('search').value ? searchFor('') : goBack()),
  Backspace: goBack,
  '/': () => byId('search').focus(),
  '?': () => byId('help').showModal(),
  f: () => turn(!view.up),
  c: () => colour(!view.byModule),
  d: togglePanel,
  r: reset,
  n: () => nextMatch(1),
  N: () => nextMatch(-1),
  '+': () => around(room.width / 2, 0.7),
  '=': () => around(room.width / 2, 0.7),
  '-': () => around(room.width / 2, 1.4),
};
for (const key of ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown']) keys[key] = () => move(key);

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId('help').open) return;
  const typing = event.target === byId('search');
  if (typing && event.key === 'Enter') nextMatch(event.shiftKey ? -1 : 1);
  else if (typing && event.key === 'Escape') {
    searchFor('');
    canvas.focus();
  } else if (typing || !keys[event.key]) return;
  else if (event.key === 'Enter' && event.target !== canvas && event.target !== document.body) return;
  else keys[event.key]();
  event.preventDefault();
}

function start() {
  dye();
  showHeading();
  showLegend();
  showCrumbs(HOME);
  showPanel();
  byId('up').addEventListener('click', () => turn(true));
  byId('down').addEventListener('click', () => turn(false));
  byId('by-kind').addEventListener('click', () => colour(false));
  byId('by-module').addEventListener('click', () => colour(true));
  byId('back').addEventListener('click', goBack);
  byId('reset').addEventListener('click', reset);
  byId('panel-open').addEventListener('click', togglePanel);
  byId('help-open').addEventListener('click', () => byId('help').showModal());
  byId('search').addEventListener('input', search);
  canvas.addEventListener('wheel', onWheel, { passive: false });
  canvas.addEventListener('pointerdown', (event) => {
    grip = { x: event.clientX, from: view.from, to: view.to, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', onPoint);
  canvas.addEventListener('pointerup', onRelease);
  canvas.addEventListener('pointercancel', () => { grip = null; });
  canvas.addEventListener('pointerleave', () => {
    view.over = -1;
    showTip(-1);
    redraw();
  });
  document.addEventListener('keydown', onKey);
  stage.addEventListener('scroll', redraw, { passive: true });
  darkness.addEventListener('change', () => colour(view.byModule));
  new ResizeObserver(settle).observe(stage);
  turn(view.up);
  settle();
  stage.scrollTop = view.up ? sheet.clientHeight : 0;
  /* #q=... opens the page with a search, so that a finding can be sent as a link. */
  const wanted = new URLSearchParams(location.hash.slice(1)).get('q');
  if (wanted) searchFor(wanted);
  document.documentElement.dataset.ready = String(boxes.n);
}

start();
