/* What stands around the graph: heading, details, legend, tooltip. Names are only ever text nodes. */

const byId = (id) => document.getElementById(id);

function element(tag, properties, ...children) {
  const made = document.createElement(tag);
  Object.assign(made, properties);
  made.append(...children.filter((child) => child !== null));
  return made;
}

function showHeading() {
  const facts = [];
  const add = (strong, rest, warn) => facts.push(element('li', { className: warn ? 'warn' : '' },
    element('b', { textContent: strong }), rest ? ' ' + rest : ''));
  if (data.compares) add(`${amount(boxes.before[0])} → ${amount(boxes.after[0])}`, data.event);
  else add(amount(data.value), data.event);
  if (data.duration) add(duration(data.duration), 'recorded');
  if (counted) add(counts.format(data.samples), data.samples === 1 ? data.noun : `${data.noun}s`);
  add(counts.format(data.lost), 'lost', data.lost > 0);
  if (data.whole + data.cut) add(percent(data.whole, data.whole + data.cut), 'of stacks whole', data.cut > data.whole / 50);
  if (data.processes > 1 || data.threads > 1) {
    add(counts.format(data.processes), (data.processes === 1 ? 'process, ' : 'processes, ') + plural(data.threads, 'thread'));
  }
  if (data.cost >= 0) add(data.cost.toFixed(2) + ' %', 'of one CPU for profiling');
  if (data.host) add(data.host, '');
  if (data.date) add(new Date(data.date).toLocaleString(), '');
  if (!data.complete) add('cut short', '', true);
  byId('title').textContent = data.title;
  byId('facts').replaceChildren(...facts);
  byId('notes').textContent = data.notes.slice(0, 3).join('\n') + (data.notes.length > 3 ? `\n… and ${data.notes.length - 3} more` : '');
  byId('notes').hidden = data.notes.length === 0;
  byId('pruned').textContent = data.pruned ? `${plural(data.pruned, 'box').replace('boxs', 'boxes')} narrower than ${data.min} % left out` : '';
  byId('direction').hidden = chart;
  canvas.setAttribute('aria-label', `${chart ? 'Flame chart' : 'Flame graph'} of ${data.title}: ${plural(boxes.n, 'frame')}, ${amount(data.value)} ${data.event}`);
}

function showLegend() {
  const entries = [];
  const add = (colour, name, value) => {
    const swatch = element('i', {});
    swatch.style.background = colour;
    entries.push(element('li', {}, swatch, element('b', { textContent: name }), percent(value, whole)));
  };
  if (data.compares) {
    const groups = [['gone, or nearly', -4, -4], ['less', -3, -1], ['as before', 0, 0], ['more', 1, 3],
      ['new, or nearly', 4, 4]];
    const levels = new Float64Array(9);
    for (let i = 0; i < boxes.n; i++) levels[changeOf(i) + 4] += boxes.self[i];
    for (const [name, first, last] of groups) {
      const value = levels.subarray(first + 4, last + 5).reduce((sum, level) => sum + level, 0);
      add(CHANGES[darkness.matches ? 1 : 0][(first + last) / 2 + 4], name, value);
    }
  } else if (view.byModule) {
    for (const [module, { value }] of modules) {
      if (module) add(moduleColour(module, 0), data.strings[module], value);
    }
  } else {
    const self = new Float64Array(data.tones.length);
    for (let i = 0; i < boxes.n; i++) self[toneOf(i)] += boxes.self[i];
    data.tones.forEach((name, tone) => {
      if (self[tone] > 0 && tone !== GROUP) add(palette.tone[tone], name, self[tone]);
    });
  }
  byId('legend').replaceChildren(...entries);
}

/* A list of names with bars; act(item) when one is chosen. */
function rows(items, colourOf, act) {
  const list = element('ul', { className: 'rows' });
  const most = Math.max(...items.map((item) => item.value), 1e-9);
  for (const item of items) {
    const bar = element('u', {});
    bar.style.width = 100 * item.value / most + '%';
    bar.style.background = colourOf(item);
    const button = element('button', { type: 'button', title: item.name }, bar,
      element('span', { textContent: item.name }), element('em', { textContent: percent(item.value, whole) }));
    button.addEventListener('click', () => act(item));
    list.append(element('li', {}, button));
  }
  return list;
}

function heaviest(weight, limit) {
  const order = [];
  for (let s = 0; s < symbols.name.length; s++) {
    if (weight[s] > 0 && symbols.tone[s] !== GROUP) order.push(s);
  }
  order.sort((a, b) => weight[b] - weight[a]);
  return order.slice(0, limit).map((s) => ({ symbol: s, name: nameOf(s), value: weight[s] }));
}

function showOverview(panel) {
  const act = (item) => searchFor('^' + item.name.replace(/[^\w\s]/g, '\\$&') + '$');
  const colourOf = (item) => palette.fill[item.symbol];
  panel.replaceChildren(
    element('h2', { textContent: 'Where it goes' }),
    element('p', { textContent: 'Point at a frame for its figures, click to zoom into it.' }),
    element('h3', { textContent: 'Top by self' }), rows(heaviest(sums.self, 14), colourOf, act),
    element('h3', { textContent: 'Top by total' }), rows(heaviest(sums.total, 14), colourOf, act));
}

function figures(box) {
  const symbol = boxes.symbol[box], p = boxes.parent[box];
  const cell = (text) => element('td', { textContent: text });
  const line = (name, value, share) => element('tr', {},
    element('th', { textContent: name, scope: 'row' }), cell(value), cell(share));
  const body = element('tbody', {},
    line('Total', amount(boxes.total[box]), percent(boxes.total[box], whole)),
    line('Self', amount(boxes.self[box]), percent(boxes.self[box], whole)),
    ...(counted ? [line(`${data.noun[0].toUpperCase()}${data.noun.slice(1)}s`, counts.format(boxes.count[box]), counts.format(boxes.selfCount[box]) + ' self')] : []));
  if (data.compares) {
    body.append(line('Before', amount(boxes.before[box]), percent(boxes.before[box], boxes.before[0])),
      line('After', amount(boxes.after[box]), percent(boxes.after[box], boxes.after[0])),
      line('Change', change(box), ''));
  }
  if (p >= 0) body.append(line('Of its caller', '', percent(boxes.total[box], boxes.total[p])));
  if (chart) body.append(line('From, for', duration(places.start[box]), duration(places.width[box])));
  if (sums.places[symbol] > 1) {
    body.append(line(`In all ${counts.format(sums.places[symbol])} places`, amount(sums.total[symbol]), percent(sums.total[symbol], whole)),
      line('… self', amount(sums.self[symbol]), percent(sums.self[symbol], whole)));
  }
  return element('table', { className: 'figures' }, body);
}

function showFrame(panel, box) {
  const symbol = boxes.symbol[box], name = nameOf(symbol), place = placeOf(box);
  const chip = element('span', { className: 'chip', textContent: data.tones[toneOf(box)] });
  chip.style.background = palette.tone[toneOf(box)];
  const zoom = element('button', { type: 'button', textContent: 'Zoom here' });
  const all = element('button', { type: 'button', textContent: 'Find all' });
  const close = element('button', { type: 'button', textContent: 'Overview' });
  zoom.addEventListener('click', () => zoomTo(box));
  all.addEventListener('click', () => searchFor('^' + name.replace(/[^\w\s]/g, '\\$&') + '$'));
  close.addEventListener('click', () => choose(-1));
  const below = [], above = [];
  for (let c = box + 1; c < boxes.end[box] && below.length < 5000; c = boxes.end[c]) below.push(c);
  for (let a = boxes.parent[box]; a >= 0 && above.length < 12; a = boxes.parent[a]) above.push(a);
  below.sort((a, b) => boxes.total[b] - boxes.total[a]);
  const item = (b) => ({ box: b, name: nameOf(boxes.symbol[b]), value: boxes.total[b] });
  const colourOf = (entry) => (data.compares ? changeColour(entry.box) : palette.fill[boxes.symbol[entry.box]]);
  const act = (entry) => zoomTo(entry.box);
  panel.replaceChildren(
    element('h2', { className: 'code', textContent: name }),
    element('p', {}, chip, moduleOf(symbol) || ''),
    element('p', { textContent: place, hidden: !place }),
    figures(box), element('div', { className: 'deeds' }, zoom, all, close));
  if (below.length) panel.append(element('h3', { textContent: 'Calls' }), rows(below.slice(0, 10).map(item), colourOf, act));
  if (above.length) panel.append(element('h3', { textContent: 'Called from' }), rows(above.map(item), colourOf, act));
}

function showPanel() {
  const panel = byId('panel');
  if (panel.hidden) return;
  if (view.chosen < 0) showOverview(panel);
  else showFrame(panel, view.chosen);
}

function speak(box) {
  if (box < 0) return;
  byId('live').textContent = `${nameOf(boxes.symbol[box])}, ${percent(boxes.total[box], whole)}, self ${percent(boxes.self[box], whole)}, depth ${boxes.depth[box]}`;
}

function showTip(box, x, y) {
  const tip = byId('tip');
  tip.hidden = box < 0;
  if (box < 0) return;
  const symbol = boxes.symbol[box], place = placeOf(box);
  const time = chart ? ` · from ${duration(places.start[box])} for ${duration(places.width[box])}` : '';
  const origin = [data.tones[toneOf(box)], moduleOf(symbol), place].filter((part) => part && part !== 'group').join(' · ');
  tip.replaceChildren(
    element('b', { textContent: nameOf(symbol) }),
    element('div', { textContent: `${amount(boxes.total[box])} · ${percent(boxes.total[box], whole)} ${counted ? ` · ${plural(boxes.count[box], data.noun)}` : ''}${time}` }),
    element('div', { hidden: !data.compares, textContent: data.compares
      ? `${amount(boxes.before[box])} → ${amount(boxes.after[box])} · ${change(box)}` : '' }),
    element('div', { textContent: `self ${amount(boxes.self[box])} · ${percent(boxes.self[box], whole)}` }),
    element('small', { textContent: origin, hidden: !origin }));
  const width = tip.offsetWidth, height = tip.offsetHeight;
  tip.style.left = Math.max(4, Math.min(x + 14, window.innerWidth - width - 8)) + 'px';
  tip.style.top = (y + 20 + height > window.innerHeight ? Math.max(4, y - height - 12) : y + 18) + 'px';
}

function showCrumbs(box) {
  const path = [];
  for (let i = box; i >= 0; i = boxes.parent[i]) path.unshift(i);
  const shown = path.length > 7 ? [path[0], -1, ...path.slice(-5)] : path;
  const parts = [];
  if (chart) {
    const all = element('button', { type: 'button', textContent: 'all threads' });
    if (box < 0) all.setAttribute('aria-current', 'location');
    all.addEventListener('click', () => reset());
    parts.push(all);
  }
  for (const i of shown) {
    if (parts.length) parts.push(element('i', { textContent: '›' }));
    if (i < 0) {
      parts.push(element('i', { textContent: `${path.length - 6} more` }));
      continue;
    }
    const name = nameOf(boxes.symbol[i]);
    const button = element('button', { type: 'button', textContent: shortName(name), title: name });
    if (i === box) button.setAttribute('aria-current', 'location');
    button.addEventListener('click', () => zoomTo(i));
    parts.push(button);
  }
  byId('crumbs').replaceChildren(...parts);
}
