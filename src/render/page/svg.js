/* Zoom, search and details for a flame graph that is opened in a browser. The picture is complete
 * without this; nothing here makes markup out of names. */
'use strict';
(() => {
  const svg = document.documentElement;
  const NS = 'http://www.w3.org/2000/svg';
  const margin = Number(svg.dataset.margin);
  const up = svg.dataset.up === '1';
  const width = Number(svg.getAttribute('width')) - 2 * margin;
  const CHARACTER = 7;
  const details = document.getElementById('details');
  const boxes = [...document.querySelectorAll('.f')].map((group) => {
    const rect = group.querySelector('rect');
    const title = group.querySelector('title').textContent.split('\n');
    return {
      group, rect,
      label: group.querySelector('text'),
      name: title[0], lines: title,
      depth: Number(group.dataset.d),
      x: Number(rect.getAttribute('x')) - margin,
      width: Number(rect.getAttribute('width')),
      y: Number(rect.getAttribute('y')),
    };
  });
  const index = new Map(boxes.map((box, i) => [box.group, i]));
  let from = 0, to = width, at = -1, hits = 0;

  function fit(name, pixels) {
    const room = Math.floor((pixels - 6) / CHARACTER);
    if (room < 3) return '';
    const characters = [...name];
    return characters.length <= room ? name : characters.slice(0, room - 1).join('') + '…';
  }

  function draw() {
    const scale = width / (to - from);
    for (const box of boxes) {
      const left = Math.max(0, (box.x - from) * scale);
      const right = Math.min(width, (box.x + box.width - from) * scale);
      const seen = right - left > 0.05;
      box.group.style.display = seen ? '' : 'none';
      if (!seen) continue;
      box.rect.setAttribute('x', margin + left);
      box.rect.setAttribute('width', right - left);
      box.label.setAttribute('x', margin + left + 4);
      box.label.textContent = fit(box.name, right - left);
      const around = box.x < from - 1e-3 || box.x + box.width > to + 1e-3;
      box.group.classList.toggle('dim', around);
    }
    const axis = document.getElementById('axis');
    if (axis) axis.style.display = to - from < width ? 'none' : '';
    reset.style.display = to - from < width || hits ? '' : 'none';
  }

  function zoom(box) {
    from = box.x;
    to = box.x + Math.max(box.width, 1e-3);
    draw();
  }

  function show(box) {
    details.textContent = box ? box.lines.join('  ·  ') : '';
  }

  function choose(i) {
    if (i < 0 || i >= boxes.length) return;
    if (at >= 0) boxes[at].group.classList.remove('at');
    at = i;
    boxes[at].group.classList.add('at');
    show(boxes[at]);
  }

  function parent(i) {
    let p = i - 1;
    while (p >= 0 && boxes[p].depth >= boxes[i].depth) p--;
    return p;
  }

  function sibling(i, step) {
    for (let s = i + step; s >= 0 && s < boxes.length; s += step) {
      if (boxes[s].depth < boxes[i].depth) return -1;
      if (boxes[s].depth === boxes[i].depth) return s;
    }
    return -1;
  }

  function child(i) {
    return i + 1 < boxes.length && boxes[i + 1].depth > boxes[i].depth ? i + 1 : -1;
  }

  function matcher(text) {
    const flags = /[A-Z]/.test(text) ? 'u' : 'iu';
    try {
      return new RegExp(text, flags);
    } catch {
      return new RegExp(text.replace(/[^\w\s]/g, '\\$&'), flags.replace('u', ''));
    }
  }

  function search(text) {
    const wanted = text ? matcher(text) : null;
    let sum = 0, inside = -1;
    hits = 0;
    for (const box of boxes) {
      const hit = wanted !== null && wanted.test(box.name);
      box.group.classList.toggle('hit', hit);
      box.group.classList.toggle('faint', wanted !== null && !hit);
      if (box.depth <= inside) inside = -1;
      if (!hit) continue;
      hits++;
      if (inside < 0) {
        sum += box.width;
        inside = box.depth;
      }
    }
    const whole = boxes.filter((box) => box.depth === 0).reduce((all, box) => all + box.width, 0);
    details.textContent = wanted === null ? ''
      : `${hits} boxes match: ${(100 * sum / (whole || 1)).toFixed(2)} % of the graph`;
    draw();
  }

  function back() {
    from = 0;
    to = width;
    input.value = '';
    input.blur();
    search('');
  }

  function place(node, attributes) {
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    return node;
  }

  const reset = place(document.createElementNS(NS, 'text'), {
    class: 'button', x: margin + width - 232, y: 27, 'text-anchor': 'end', tabindex: 0, role: 'button',
  });
  reset.textContent = 'Reset';
  reset.addEventListener('click', back);
  const field = place(document.createElementNS(NS, 'foreignObject'), {
    x: margin + width - 222, y: 8, width: 222, height: 30,
  });
  const input = place(document.createElementNS('http://www.w3.org/1999/xhtml', 'input'), {
    id: 'search', type: 'search', placeholder: 'Search: text or regex  ( / )', 'aria-label': 'Search names',
    spellcheck: 'false', autocomplete: 'off',
  });
  input.addEventListener('input', () => search(input.value));
  field.append(input);
  svg.append(reset, field);

  const boxOf = (event) => {
    const group = event.target.closest && event.target.closest('.f');
    return group ? boxes[index.get(group)] : null;
  };
  svg.addEventListener('click', (event) => {
    const box = boxOf(event);
    if (!box) return;
    choose(index.get(box.group));
    zoom(box);
  });
  svg.addEventListener('mouseover', (event) => {
    const box = boxOf(event);
    if (box) show(box);
  });
  const moves = {
    ArrowLeft: (i) => sibling(i, -1),
    ArrowRight: (i) => sibling(i, 1),
    ArrowUp: (i) => (up ? child(i) : parent(i)),
    ArrowDown: (i) => (up ? parent(i) : child(i)),
  };
  window.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === input && event.key !== 'Escape') return;
    if (moves[event.key]) choose(at < 0 ? 0 : moves[event.key](at));
    else if (event.key === 'Enter' && event.target === reset) back();
    else if (event.key === 'Enter' && at >= 0) zoom(boxes[at]);
    else if (event.key === 'Escape' || event.key === 'r') back();
    else if (event.key === '/') input.focus();
    else return;
    event.preventDefault();
  });
  draw();
})();
