// The file page in a real Chromium: every view opened and used, its numbers those of `sonde report`.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { bytes, count } from '../src/data/format.ts';
import { close, launch, newPage, report, rows, violations } from './browser.mjs';

const VIEWS = ['#/overview', '#/flame/graph', '#/flame/sandwich', '#/flame/table', '#/flame/lines', '#/timeline', '#/memory', '#/calls', '#/counters'];
let browser;
let page;

before(async () => {
  browser = await launch();
  page = await newPage(browser);
});
after(() => browser.close());

// A view is opened once and looked at in both colours.
test('no axe violations in any view, light and dark', async () => {
  const check = async (file, views) => {
    const themed = await newPage(browser);
    await themed.open(file);
    for (const view of views) {
      await themed.go(view);
      for (const colorScheme of ['light', 'dark']) {
        await themed.emulateMedia({ colorScheme });
        await themed.locator(`html[data-theme="${colorScheme}"]`).waitFor();
        assert.deepEqual(await violations(themed), [], `${file}${view}, ${colorScheme}`);
      }
    }
    assert.deepEqual(themed.complaints, []);
    await themed.close();
  };
  const some = ['#/overview', '#/flame/graph', '#/flame/table', '#/memory'];
  await Promise.all([check('plain.html', VIEWS), check('heap.html', some).then(() => check('diff.html', some))]);
});

test('help tells the keys, and keys lead from view to view', async () => {
  await page.open('plain.html');
  await page.keyboard.press('?');
  await page.locator('dialog.help[open]', { hasText: 'copy the name' }).waitFor();
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press('2');
  assert.match(await page.evaluate(() => location.hash), /^(#\/overview)?$/);
  await page.keyboard.press('Escape');
  await page.locator('dialog.help[open]').waitFor({ state: 'detached' });
  await page.keyboard.press('3');
  await page.locator('.tracks').waitFor();
  await page.keyboard.press('2');
  await page.locator('.flame canvas').focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowDown');
  const name = await page.locator('.inspector-name').textContent();
  await page.keyboard.press('c');
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  await page.locator('input[type=search]').focus();
  await page.keyboard.press('Control+v');
  assert.equal(await page.locator('input[type=search]').inputValue(), name);
});

test('functions have the numbers of the report', async () => {
  const truth = report('plain.sonde');
  await page.open('plain.html', '#/flame/table');
  // A name may stand for several functions: they are told apart by their numbers.
  const text = (r) => [r.name, r.self, r.total, r.samples ?? r.self_samples].join(' ');
  const shown = (await rows(page, 'Functions by CPU time')).map(text).sort();
  assert.deepEqual(shown, truth.functions.rows.map(text).sort());
  assert.ok(shown.length > 20);
});

test('lines have the numbers of the report', async () => {
  const truth = report('plain.sonde', '--lines').lines.rows.filter((l) => l.line);
  await page.open('plain.html', '#/flame/lines');
  const shown = await rows(page, 'Source lines');
  assert.ok(truth.length > 10);
  for (const l of truth) {
    const row = shown.find((r) => r.file === l.file && r.line.endsWith(`:${l.line}`));
    close(row?.self, l.self, `self of ${l.file}:${l.line}`);
  }
});

test('processes have the numbers of the report, alone and within a time', async () => {
  const processes = async () => page.evaluate(() => Object.fromEntries([...document.querySelectorAll('tr[data-pid]')]
    .map((row) => [row.dataset.pid, Number(row.querySelector('[data-column=self]').dataset.value)])));
  await page.open('plain.html');
  const whole = await processes();
  for (const p of report('plain.sonde', '--processes').processes.rows) close(whole[p.pid], p.self, `pid ${p.pid}`);
  await page.go('#/overview?time=500000000~1250000000');
  await page.locator('.chip').waitFor();
  const part = await processes();
  const truth = report('plain.sonde', '--processes', '--from', '500ms', '--to', '1250ms').processes.rows;
  assert.ok(truth.every((p) => p.self < whole[p.pid]));
  for (const p of truth) close(part[p.pid], p.self, `pid ${p.pid} within a time`);
});

test('a process that is clicked narrows every view, and its chip widens them again', async () => {
  await page.open('plain.html');
  await page.locator('tr[data-pid="4200"] button.link').click();
  await page.getByRole('link', { name: 'Flame' }).click();
  await page.getByRole('button', { name: 'Table' }).click();
  const truth = report('plain.sonde', '--pid', '4200').functions.rows;
  const shown = new Map((await rows(page, 'Functions by CPU time')).map((r) => [r.name, r]));
  assert.equal(shown.size, truth.length);
  for (const f of truth) close(shown.get(f.name).total, f.total, f.name);
  await page.getByRole('button', { name: /Remove the filter packer/ }).click();
  assert.ok((await rows(page, 'Functions by CPU time')).length > truth.length);
});

test('a time that is dragged on a curve becomes a filter', async () => {
  await page.open('plain.html');
  const over = await page.locator('.u-over').first().boundingBox();
  await page.mouse.move(over.x + over.width * 0.25, over.y + 30);
  await page.mouse.down();
  await page.mouse.move(over.x + over.width * 0.75, over.y + 40, { steps: 5 });
  await page.mouse.up();
  await page.locator('.chip').waitFor();
  const [from, to] = new URLSearchParams((await page.evaluate(() => location.hash)).split('?')[1]).get('time').split('~').map(Number);
  close(from / 1e7, 50, 'from');
  close(to / 1e7, 150, 'to');
  // It is seen on the curve, and said where it narrows nothing.
  const seen = await page.locator('.u-select').first().evaluate((e) => [getComputedStyle(e).backgroundColor, e.getBoundingClientRect().width]);
  const accent = await page.locator('.brand').evaluate((e) => getComputedStyle(e).color);
  assert.equal(seen[0], accent);
  close(seen[1], over.width / 2, 'width');
  await page.open('heap.html', '#/memory?time=1~1000000');
  assert.match(await page.locator('.chips').textContent(), /memory has no times/);
  await page.open('heap.html', '#/counters?time=1~1000000');
  assert.match(await page.locator('.chips').textContent(), /\(memory\) is of the whole recording/);
  await page.open('heap.html', '#/flame/graph?time=1~1000000');
  assert.doesNotMatch(await page.locator('.chips').textContent(), /whole recording/);
});

test('zooming by click, keys and wheel; the back button and the address restore it', async () => {
  await page.open('plain.html', '#/flame/graph');
  const canvas = page.locator('.flame canvas');
  const view = () => canvas.evaluate((c) => [c.flame.from, c.flame.to]);
  const box = await canvas.boundingBox();
  await page.mouse.click(box.x + box.width * 0.1, box.y + 19 * 5.5); // parse_body
  await page.waitForFunction(() => location.hash.includes('zoom='));
  await page.waitForFunction(() => document.querySelector('.flame canvas').flame.to < 0.3);
  assert.equal(await page.locator('.inspector-name').textContent(), 'parse_body');
  const [from, to] = await view();
  const address = await page.evaluate(() => location.href);
  await page.mouse.click(box.x + box.width * 0.1, box.y + 19 * 7.5);
  await page.waitForFunction((t) => document.querySelector('.flame canvas').flame.to < t - 0.01, to);
  await page.goBack();
  await page.waitForFunction((t) => Math.abs(document.querySelector('.flame canvas').flame.to - t) < 1e-6, to);
  const again = await newPage(browser);
  await again.goto(address);
  await again.locator('.flame canvas').waitFor();
  await again.waitForFunction((t) => Math.abs(document.querySelector('.flame canvas').flame?.to - t) < 1e-6, to);
  await again.close();
  await canvas.focus();
  await page.keyboard.press('Escape');
  await page.waitForFunction(() => document.querySelector('.flame canvas').flame.to === 1);
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  assert.equal(await page.locator('.inspector-name').textContent(), 'main');
  await page.keyboard.press('ArrowRight');
  assert.equal(await page.locator('.inspector-name').textContent(), 'start_thread');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('.flame canvas').flame.from > 0.6);
  await page.mouse.move(box.x + 400, box.y + 40);
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -200);
  await page.keyboard.up('Control');
  await page.waitForFunction(() => { const f = document.querySelector('.flame canvas').flame; return f.to - f.from < 0.2; });
  assert.ok(from < to);
});

test('the search finds, sums up, and takes what is no expression as text', async () => {
  await page.open('plain.html', '#/flame/graph');
  await page.keyboard.press('/');
  await page.keyboard.type('^json::(object|skip)');
  const truth = report('plain.sonde', '--function', 'Json::(object|skip)').functions.rows;
  const hit = Math.max(...truth.filter((f) => f.name === 'main').map((f) => f.total));
  await page.waitForFunction(() => document.querySelector('.search-sum'));
  const share = (await page.locator('.search-sum').textContent()).match(/([\d.]+) %/)[1];
  close(Number(share) * 10, Math.round((hit / 2e9) * 1000), 'share that was found');
  await page.getByRole('button', { name: 'Table' }).click();
  await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 2);
  await page.locator('input[type=search]').fill('json::object(');
  await page.locator('#search-note').waitFor();
  await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1);
});

test('a function between its callers and callees', async () => {
  await page.open('plain.html', '#/flame/table');
  await page.locator('tbody tr', { hasText: 'handle_request' }).click();
  await page.locator('.sandwich-head h2', { hasText: 'handle_request' }).waitFor();
  const [up, down] = await page.locator('.half canvas').all();
  const names = (c) => c.evaluate((e) => { const { sums } = e.flame.scene.layout; return [sums.value, ...[...e.flame.scene.layout.level(1).node].map((n) => sums.tree.name(n))]; });
  const total = report('plain.sonde').functions.rows.find((f) => f.name === 'handle_request').total;
  assert.deepEqual(await names(up), [total, 'serve(int, char**)']);
  assert.deepEqual(await names(down), [total, 'parse_body', 'query', 'render']);
});

test('the timeline zooms, folds and names what is under the pointer', async () => {
  await page.open('plain.html', '#/timeline');
  const canvas = page.locator('.track-canvas canvas');
  const box = await canvas.boundingBox();
  await canvas.focus();
  for (let i = 0; i < 6; i++) await page.keyboard.press('w');
  await page.waitForFunction(() => { const t = document.querySelector('.track-canvas canvas').timeline; return t.to - t.from < 1e9; });
  await page.keyboard.press('d');
  assert.match(await page.evaluate(() => location.hash), /zoom=/);
  await page.mouse.move(box.x + box.width / 2, box.y + 26 + 34 + 26);
  await page.locator('.tracks .tip').waitFor();
  // By keys alone: a box beside, one below, and it from edge to edge.
  await page.keyboard.press('Escape');
  await page.mouse.move(box.x + 5, box.y + 5);
  await page.locator('.tracks .tip').waitFor({ state: 'detached' });
  for (const key of ['ArrowDown', 'ArrowRight', 'ArrowDown']) await page.keyboard.press(key);
  const text = await page.locator('.tracks .tip').innerText();
  const [, name, length] = text.split('\n');
  assert.match(length, /^for [\d.]+ (ms|s)$/);
  assert.ok((await page.locator('.track-canvas [aria-live]').textContent()).includes(`${name}, ${length}, thread `));
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => { const t = document.querySelector('.track-canvas canvas').timeline; return t.to - t.from < 1.9e9; });
  const shown = await canvas.evaluate((c) => {
    const { cursor, scene } = c.timeline;
    const hit = c.timeline.hit(scene.tracks.find((t) => t.thread === cursor.thread && t.process === cursor.process), cursor.row, cursor.time);
    return [hit.boxes.start[hit.box], hit.boxes.end[hit.box], c.timeline.from, c.timeline.to];
  });
  assert.ok(shown[2] <= shown[0] && shown[3] >= shown[1] && shown[3] - shown[2] < 1.2 * (shown[1] - shown[0]), shown.join(' '));
  const tall = await page.locator('.tracks-inner').evaluate((e) => e.scrollHeight);
  await page.getByRole('button', { name: 'Fold all', exact: true }).click();
  await page.waitForFunction((t) => document.querySelector('.tracks-inner').scrollHeight < t, tall);
});

test('memory has the numbers of the report', async () => {
  const leaks = report('heap.sonde', '--leaks').leaks.facts;
  const peaks = report('heap.sonde', '--peaks').peaks.rows;
  await page.open('heap.html', '#/memory');
  assert.equal(await page.locator('.peaks tbody tr').count(), Math.min(12, peaks.length));
  await page.getByRole('button', { name: 'Allocated', exact: true }).click();
  const allocated = (await rows(page, 'Heap allocated')).reduce((a, r) => a + r.bytes, 0);
  const event = report('heap.sonde', '--notes').accounting.rows.find((e) => e.event === 'heap:allocated');
  close(allocated, event.value, 'allocated');
  await page.getByRole('button', { name: 'Not freed' }).click();
  const shown = (await rows(page, 'Not freed')).reduce((a, r) => a + r.bytes, 0);
  close(shown, leaks.leaked, 'leaked');
  assert.ok(leaks.leaked > 0);
  await page.getByRole('button', { name: 'Allocated', exact: true }).click();
  await page.getByRole('button', { name: 'Open as flame graph' }).click();
  await page.locator('.flame canvas').waitFor();
  assert.equal(await page.locator('select').first().inputValue(), 'heap:allocated');
  // One process alone: its own figures, not those of the tree.
  await page.go('#/overview');
  const pid = (await page.locator('tr[data-pid]').evaluateAll((all) => all.map((row) => Number(row.dataset.pid))))[1];
  await page.locator(`tr[data-pid="${pid}"] button.link`).click();
  await page.getByRole('link', { name: 'Memory' }).click();
  const fact = (label) => page.locator('.fact', { has: page.locator('dt', { hasText: new RegExp(`^${label}$`) }) }).innerText();
  const own = report('heap.sonde', '--heap').heaps.rows.find((row) => row.pid === pid);
  assert.equal(await fact('Allocations'), `Allocations\n${count(own.allocations)}\n${bytes(own.allocated)} in all`);
  assert.equal(await fact('Peak'), `Peak\n${bytes(own.peak)}\nof the chosen process`);
});

test('calls and counters lead to functions', async () => {
  await page.open('plain.html', '#/calls');
  const calls = await rows(page, 'Calls from function to function');
  const call = calls.find((c) => c.from === 'query' && c.to === 'sqlite3_step');
  close(call.value, report('plain.sonde').functions.rows.find((f) => f.name === 'sqlite3_step').total, 'query > sqlite3_step');
  await page.locator('.box', { hasText: 'sqlite3_step' }).first().click();
  await page.waitForFunction(() => location.hash.includes('symbol='));
  await page.getByRole('button', { name: 'Whole graph' }).click();
  // What works most is in the window, however wide the graph is; and it says that it goes on.
  const graph = page.locator('.graph-scroll');
  const heaviest = report('plain.sonde').functions.rows.reduce((a, f) => (f.self > a.self ? f : a));
  const works = () => page.evaluate(() => {
    const own = (e) => Number(e.querySelector('.box-own').getAttribute('width'));
    const box = [...document.querySelectorAll('.box')].sort((a, b) => own(b) - own(a))[0];
    const { x, width } = box.getBoundingClientRect();
    return { name: box.querySelector('.box-name').textContent, x, width };
  });
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 800 });
    await page.go('#/overview');
    await page.go('#/calls');
    await graph.waitFor();
    const [window, at] = [await graph.boundingBox(), await works()];
    assert.equal(at.name, heaviest.name);
    assert.ok(at.x >= window.x && at.x + at.width <= window.x + window.width, `${width}: ${JSON.stringify([window, at])}`);
    const rest = await graph.evaluate((e) => [e.scrollLeft > 1 ? 'left' : '', e.scrollLeft + e.clientWidth < e.scrollWidth - 1 ? 'right' : ''].filter(Boolean).join(' '));
    assert.equal(await graph.getAttribute('data-more'), rest);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.getByRole('link', { name: 'Counters' }).click();
  const counters = await rows(page, 'Events by function');
  assert.ok(counters.some((c) => c['off-cpu:lock'] > 0) && counters.some((c) => c.cpu > 0));
});

test('events beside each other have the numbers of the report', async () => {
  const truth = new Map(report('heap.sonde', '--event', 'heap:allocated').functions.rows.map((f) => [f.name, f]));
  await page.open('heap.html', '#/counters');
  const check = async (part) => {
    const shown = (await rows(page, 'Events by function')).filter((r) => r['heap:allocated'] > 0);
    assert.ok(shown.length > 0);
    for (const r of shown) close(r['heap:allocated'], truth.get(r.name)[part], `${part} of ${r.name}`);
  };
  await check('total');
  await page.getByRole('button', { name: 'Self', exact: true }).click();
  await check('self');
});

test('rows of a table are reached and opened by keys', async () => {
  await page.open('plain.html', '#/flame/table');
  await page.locator('tbody tr').first().focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowUp');
  const name = await page.locator('tbody tr:focus .function-text').textContent();
  assert.equal(name, await page.locator('tbody tr:nth-child(2) .function-text').textContent());
  await page.keyboard.press('Enter');
  await page.locator('.sandwich-head h2', { hasText: name }).waitFor();
});

test('two recordings are compared', async () => {
  const here = new Map(report('plain.sonde').functions.rows.map((f) => [f.name, f.self]));
  const there = new Map(report('other.sonde').functions.rows.map((f) => [f.name, f.self]));
  const whole = (side) => [...side.values()].reduce((a, v) => a + v, 0);
  // Totals differ, so that at first the one before is shown at the same total, as sonde diff does; or as recorded.
  const how = page.getByLabel('How the one before is compared');
  for (const [per, scale] of [['share', whole(here) / whole(there)], ['run', 1]]) {
    if (per === 'share') await page.open('diff.html', '#/flame/table');
    else await how.selectOption(per);
    assert.equal(await how.inputValue(), per);
    const shown = new Map((await rows(page, 'Functions by CPU time')).map((r) => [r.name, r]));
    for (const name of new Set([...here.keys(), ...there.keys()])) {
      const before = scale * (there.get(name) ?? 0);
      close(shown.get(name)?.before, before, `before of ${name}`);
      close(shown.get(name)?.change, (here.get(name) ?? 0) - before, `change of ${name}`);
    }
  }
  await page.go('#/flame/graph');
  await page.locator('.legend', { hasText: 'grown' }).waitFor();
  await page.getByRole('checkbox').uncheck();
  await page.locator('.legend', { hasText: 'Python' }).waitFor();
  await page.getByRole('checkbox').check();
  await page.go('#/flame/graph?value=wall'); // that only one of them has
  await page.locator('.filters', { hasText: 'it has no Wall time: nothing is compared' }).waitFor();
  await page.locator('.legend', { hasText: 'Python' }).waitFor();
});

test('names are never markup, and nothing is asked of any network', async () => {
  const hostile = await newPage(browser);
  await hostile.open('hostile.html');
  for (const view of VIEWS) {
    await hostile.go(view);
    await hostile.waitForTimeout(100);
    const harm = await hostile.evaluate(() => ({
      broken: document.documentElement.dataset.broken ?? null,
      foreign: document.querySelectorAll('img, iframe, object, embed, [onerror], [onload], [onmouseover], a[href^="javascript"]').length,
      scripts: document.scripts.length,
    }));
    assert.deepEqual(harm, { broken: null, foreign: 0, scripts: 2 }, view);
  }
  assert.match(await hostile.locator('h1').textContent(), /<img src=x onerror=alert\(1\)>/);
  await hostile.evaluate(() => { const s = document.createElement('script'); s.textContent = 'document.documentElement.dataset.broken = 1'; document.body.append(s); });
  assert.equal(await hostile.evaluate(() => document.documentElement.dataset.broken ?? null), null);
  hostile.complaints = hostile.complaints.filter((c) => !/Content Security Policy/.test(c));
  assert.deepEqual(hostile.complaints, []);
  assert.ok([...hostile.requests, ...page.requests].every((url) => /^(file|about|data):/.test(url)));
  assert.deepEqual(page.complaints, []);
});

test('a narrow window has no sideways scroll', async () => {
  const narrow = await newPage(browser, { viewport: { width: 390, height: 800 } });
  await narrow.open('heap.html');
  for (const view of VIEWS) {
    await narrow.go(view);
    const over = await narrow.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(over <= 0, `${view} is ${over} px too wide`);
  }
  await narrow.close();
});
