// A real session of many processes, watched: PAGE_URL is a live page, or the file of the same run.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { close, launch, newPage, report, violations } from './browser.mjs';

const url = process.env.PAGE_URL;
const wanted = Number(process.env.PAGE_PROCESSES);
const isFile = url.startsWith('file:');
let browser;

before(async () => (browser = await launch()));
after(() => browser.close());

const processes = (page) => page.evaluate(() => [...document.querySelectorAll('tr[data-pid]')].map((row) => ({
  pid: Number(row.dataset.pid),
  cpu: Number(row.querySelector('[data-column=self]').dataset.value),
  live: row.querySelector('[data-column=live]')?.textContent ?? '',
})));

async function open(hash) {
  const page = await newPage(browser);
  await page.goto(`${url}${hash}`);
  await page.locator('.view').waitFor();
  return page;
}

test('the tree of a running program', { skip: isFile }, async () => {
  let page = await open('#/overview');
  // All processes, each with CPU time and a heap.
  await page.waitForFunction((n) => {
    const rows = [...document.querySelectorAll('tr[data-pid]')];
    return rows.length === n && rows.every((row) => Number(row.querySelector('[data-column=self]').dataset.value) > 0 &&
      /iB/.test(row.querySelector('[data-column=live]').textContent));
  }, wanted, { timeout: 60000 });
  const { pid, cpu } = (await processes(page))[5];
  // One is picked, its heap snapshotted, a moment marked.
  await page.locator(`tr[data-pid="${pid}"] button.link`).click();
  await page.getByRole('combobox', { name: 'What to control' }).selectOption('heap');
  await page.locator('.controls', { hasText: `of process ${pid}` }).waitFor();
  await page.getByRole('button', { name: 'Snapshot' }).click();
  await page.locator('.answer.good', { hasText: 'heap:snapshot-1' }).waitFor();
  await page.getByRole('textbox', { name: 'Name of this moment' }).fill('looked <b>here</b>');
  await page.getByRole('button', { name: 'Mark', exact: true }).click();
  await page.locator('.answer.good', { hasText: 'marked' }).waitFor();
  assert.deepEqual(await violations(page), []);
  const address = await page.evaluate(() => location.hash);
  assert.deepEqual(page.complaints, []);
  await browser.close();
  // Opened again: the same process, and it has gone on.
  browser = await launch();
  page = await open(address);
  await page.locator('.chip', { hasText: String(pid) }).waitFor();
  await page.waitForFunction(([p, before]) =>
    Number(document.querySelector(`tr[data-pid="${p}"] [data-column=self]`)?.dataset.value) > before, [pid, cpu], { timeout: 60000 });
  await page.locator('.marks', { hasText: 'looked <b>here</b>' }).waitFor();
  await page.getByRole('link', { name: 'Memory' }).click();
  await page.getByRole('button', { name: 'Snapshot 1' }).click();
  await page.locator('.holders tbody', { hasText: 'serve' }).waitFor({ timeout: 60000 });
  // What a person sees is Python calling Python, not how the interpreter does it.
  await page.go('#/flame/graph');
  await page.waitForFunction(() => {
    const { tree, total } = document.querySelector('.flame canvas')?.flame?.scene?.layout.sums ?? {};
    return tree && total.some((v, i) => v && tree.name(i) === 'crunch' && tree.name(tree.parent.data[i]) === 'serve');
  }, null, { timeout: 60000 });
  const odd = await page.evaluate(() => {
    const { tree, total } = document.querySelector('.flame canvas').flame.scene.layout.sums;
    const name = (i) => tree.name(i);
    return [...total.keys()].filter((i) => total[i] && name(i) === 'crunch').map((i) => name(tree.parent.data[i])).filter((n) => n !== 'serve');
  });
  assert.deepEqual(odd, []);
  assert.deepEqual(page.complaints, []);
});

test('the file of the same run', { skip: !isFile }, async () => {
  const page = await open('#/overview');
  const truth = report('tree.sonde', '--processes').processes.rows;
  const shown = await processes(page);
  assert.equal(shown.length, wanted);
  for (const p of truth) close(shown.find((s) => s.pid === p.pid).cpu, p.self, `pid ${p.pid}`);
  await page.locator('.marks', { hasText: 'looked <b>here</b>' }).waitFor();
  await page.go('#/memory?value=heap:snapshot-1');
  await page.locator('.holders tbody', { hasText: 'serve' }).waitFor();
  assert.ok(page.requests.every((r) => r.startsWith('file:')));
  assert.deepEqual(page.complaints, []);
});
