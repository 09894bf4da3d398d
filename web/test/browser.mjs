// What the tests in a real browser share: Chromium from PATH, pages that note what goes wrong.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

const require = createRequire(process.env.PAGE_ROOT + '/package.json');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

export const folder = process.env.PAGE_FOLDER;
export const sonde = process.env.PAGE_SONDE;

export function report(recording, ...options) {
  const text = execFileSync(sonde, ['report', '--json', ...options, `${folder}/${recording}`], { maxBuffer: 1 << 28 });
  return JSON.parse(text).sections;
}

export async function launch() {
  const path = execFileSync('sh', ['-c', 'command -v chromium || command -v chromium-browser']).toString().trim();
  return chromium.launch({ executablePath: path, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}

/** A page whose complaints and requests are kept; `open` goes to a view and waits for it. */
export async function newPage(browser, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', ...options });
  page.complaints = [];
  page.requests = [];
  page.on('pageerror', (e) => page.complaints.push(String(e)));
  page.on('console', (m) => m.type() === 'error' && page.complaints.push(m.text()));
  page.on('dialog', (d) => (page.complaints.push(`dialog: ${d.message()}`), d.dismiss()));
  page.on('request', (r) => page.requests.push(r.url()));
  page.open = async (file, hash = '') => {
    await page.goto('about:blank');
    await page.goto(`file://${folder}/${file}${hash}`);
    await page.locator('main[aria-busy="false"] .view').waitFor();
  };
  page.go = async (hash) => {
    await page.evaluate((h) => (location.hash = h), hash);
    await page.locator('.view').waitFor();
  };
  return page;
}

/** Violations of axe's rules, as lines. axe is put into each document once: reading it takes as long as a view's check. */
export async function violations(page) {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return found.violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.target.join(' ')}: ${n.failureSummary}`));
}

/** Rows of the first table with that caption: by column the exact number, or the text. */
export async function rows(page, caption) {
  const more = page.locator('.more');
  while (await more.count()) await more.first().click();
  return page.evaluate((wanted) => {
    const table = [...document.querySelectorAll('table')].find((t) => t.caption?.textContent === wanted);
    return [...table.tBodies[0].rows].map((row) => Object.fromEntries([...row.cells].map((cell) =>
      [cell.dataset.column, cell.dataset.value !== undefined ? Number(cell.dataset.value) : cell.textContent])));
  }, caption);
}

export function close(a, b, message) {
  assert.ok(Math.abs(a - b) <= Math.max(1, Math.abs(b) * 1e-9), `${message}: ${a} is not ${b}`);
}
