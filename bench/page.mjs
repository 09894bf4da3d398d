// The page of a large recording in Chromium: time until the first view, and frames while zooming.
// Prints one line a figure. CPU is that of the page's own process; on a busy machine it is the
// figure to look at, on a quiet one both are close.

import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';

const [, , root, file, what] = process.argv;
const { chromium } = createRequire(`${root}/web/package.json`)('playwright-core');
const path = execFileSync('sh', ['-c', 'command -v chromium || command -v chromium-browser']).toString().trim();
const browser = await chromium.launch({ executablePath: path, args: ['--no-sandbox'] });
const session = await browser.newBrowserCDPSession();

async function cpu() {
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  return processInfo.filter((p) => p.type === 'renderer').reduce((a, p) => a + p.cpuTime * 1000, 0);
}

const middle = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
/** Zooms in and out for 240 frames; gaps between frames and what each took to draw. */
const zooming = (page, selector, board) => page.evaluate(([where, name]) => new Promise((done) => {
  const view = document.querySelector(where)[name];
  const whole = view.to - view.from;
  const gaps = [];
  const draws = [];
  let last = 0;
  let n = 0;
  const frame = (time) => {
    if (last) gaps.push(time - last);
    last = time;
    draws.push(view.cost);
    const part = whole * 0.5 ** (6 * Math.abs(Math.sin(n / 40)));
    view.show(0.3 * (whole - part), 0.3 * (whole - part) + part);
    if (++n < 240) requestAnimationFrame(frame);
    else done({ gaps, draws });
  };
  requestAnimationFrame(frame);
}), [selector, board]);

async function timeline() {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  const began = performance.now();
  await page.goto(`file://${file}#/timeline`, { waitUntil: 'commit' });
  await page.waitForFunction(() => document.querySelector('.track-canvas canvas')?.timeline?.spans.size > 0, null, { timeout: 120000 });
  const shown = performance.now() - began;
  const { gaps, draws } = await zooming(page, '.track-canvas canvas', 'timeline');
  console.log(`timeline after ${shown.toFixed(0)} ms; zooming: ${(1000 / middle(gaps)).toFixed(0)} frames/s (goal 60), a frame is drawn in ${middle(draws).toFixed(1)} ms`);
  await browser.close();
}

if (what === 'timeline') {
  await timeline();
  process.exit(0);
}

const results = { first: [], whole: [], wholeCpu: [], flame: [], flameCpu: [], gap: [], draw: [], frameCpu: [] };
let nodes = 0;
for (let round = 0; round < 3; round++) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  let before = await cpu();
  let began = performance.now();
  await page.goto(`file://${file}#/overview`, { waitUntil: 'commit' });
  await page.waitForFunction(() => document.querySelector('.hot'), null, { timeout: 120000 });
  results.first.push(await page.evaluate(() => performance.getEntriesByName('first view')[0].startTime));
  results.whole.push(performance.now() - began);
  results.wholeCpu.push((await cpu()) - before);
  before = await cpu();
  began = performance.now();
  await page.evaluate(() => (location.hash = '#/flame/graph'));
  await page.waitForFunction(() => document.querySelector('.flame canvas')?.flame?.drawn > 0, null, { timeout: 120000 });
  results.flame.push(performance.now() - began);
  results.flameCpu.push((await cpu()) - before);
  before = await cpu();
  const frames = await zooming(page, '.flame canvas', 'flame');
  nodes = await page.evaluate(() => document.querySelector('.flame canvas').flame.scene.layout.sums.tree.length);
  results.frameCpu.push(((await cpu()) - before) / frames.gaps.length);
  results.gap.push(middle(frames.gaps));
  results.draw.push(middle(frames.draws));
  await page.close();
}
await browser.close();
const least = (list) => Math.min(...list);
console.log(`first view: ${least(results.first).toFixed(0)} ms (goal 1000); all of it: ${least(results.whole).toFixed(0)} ms, ${least(results.wholeCpu).toFixed(0)} ms of CPU`);
console.log(`then the flame graph of ${nodes} nodes: ${least(results.flame).toFixed(0)} ms, ${least(results.flameCpu).toFixed(0)} ms of CPU`);
console.log(`zooming: ${(1000 / least(results.gap)).toFixed(0)} frames/s (goal 60), a frame is drawn in ${least(results.draw).toFixed(1)} ms, ${least(results.frameCpu).toFixed(1)} ms of CPU`);
