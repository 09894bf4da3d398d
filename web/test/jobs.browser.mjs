// The page of a server of jobs: PAGE_URL has jobs 2001 and 2002, see tests/integration/test_page.py.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { close, launch, newPage, report, rows, violations } from './browser.mjs';

const url = process.env.PAGE_URL;
let browser, page;

before(async () => {
  browser = await launch();
  page = await newPage(browser);
  await page.goto(`${url}/`);
  await page.locator('.jobs').waitFor();
});
after(() => browser.close());

test('jobs are listed, made and removed', async () => {
  const ids = async () => (await rows(page, 'Jobs')).map((r) => r.id).sort();
  assert.deepEqual(await ids(), [2001, 2002]);
  await page.getByRole('spinbutton', { name: 'Number of the new job' }).fill('2050');
  await page.getByRole('textbox', { name: 'What the new job is about' }).fill('by hand');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.locator('.answer.good', { hasText: 'Job 2050 was created' }).waitFor();
  await page.locator('.job-title', { hasText: 'Job 2050' }).waitFor();
  assert.deepEqual(await violations(page), []);
  // The same number again is refused in the server's own words.
  await page.getByRole('spinbutton', { name: 'Number of the new job' }).fill('2050');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.locator('.answer.bad', { hasText: '2050' }).waitFor();
  await page.getByRole('button', { name: 'Remove job 2050' }).click();
  await page.getByRole('button', { name: 'Remove', exact: true }).click();
  await page.locator('.answer.good', { hasText: 'was removed' }).waitFor();
  await page.waitForFunction(() => document.querySelectorAll('.job-list tbody tr').length === 2);
  assert.deepEqual(await ids(), [2001, 2002]);
});

test('functions by any event, and beside another job', async () => {
  await page.go('#/jobs?job=2002&value=cpu');
  await page.locator('h2', { hasText: 'Top functions by cpu' }).waitFor();
  await page.waitForFunction(() => document.querySelectorAll('[data-column=value]').length > 2);
  let shown = await rows(page, 'Top functions by cpu');
  assert.deepEqual(shown.map((r) => [r.function, r.value]), [['parse', 27e6], ['emit', 12e6], ['<b>scan</b>', 3e6]]);
  await page.getByRole('combobox', { name: 'Event' }).selectOption('cache-misses');
  await page.locator('h2', { hasText: 'Top functions by cache-misses' }).waitFor();
  await page.waitForFunction(() => document.querySelectorAll('[data-column=value]').length > 2);
  shown = await rows(page, 'Top functions by cache-misses');
  assert.deepEqual(shown.map((r) => r.value), [9000, 4000, 1000]);
  await page.locator('h2', { hasText: 'cache-misses over time' }).waitFor();
  await page.go('#/jobs?job=2002&with=2001&value=cpu');
  await page.waitForFunction(() => document.querySelectorAll('[data-column=change]').length > 2);
  const compared = new Map((await rows(page, 'Jobs 2002 and 2001 by cpu')).map((r) => [r.function, r]));
  assert.deepEqual([compared.get('parse').a, compared.get('parse').b, compared.get('parse').change], [27e6, 9e6, 18e6]);
  assert.deepEqual(await violations(page), []);
});

test('what is pushed meanwhile appears', async () => {
  await page.go('#/jobs?job=2002');
  await page.locator('.job-title', { hasText: '2002' }).waitFor();
  await page.waitForTimeout(500); // it listens
  await fetch(`${url}/api/jobs/2002/batches`, { method: 'POST', body: JSON.stringify({ key: 'late', bench: [{ name: 'late', run: { real: 1 } }] }) });
  await page.locator('.strips circle').first().waitFor({ timeout: 20000 });
});

test('pages that were left hold none of the few connections that a browser has', async () => {
  for (let i = 0; i < 8; i++) {
    await page.goto(`${url}/#/jobs?job=2001`);
    await page.locator('.job-title', { hasText: '2001' }).waitFor();
    await page.goto('about:blank');
  }
  await page.goto(`${url}/#/jobs?job=2001`);
  await page.locator('h2', { hasText: 'Top functions by cpu' }).waitFor({ timeout: 20000 });
});

test('distributions of benchmarks', async () => {
  await page.go('#/jobs?job=2001');
  await page.waitForFunction(() => document.querySelectorAll('.strips circle').length > 2);
  const shown = await rows(page, 'Distributions of real');
  close(shown.find((r) => r.name === 'old').median * 1e6, 1.555e6, 'median');
  assert.deepEqual(shown.map((r) => [r.name, r.runs, r.outliers]), [['old', 12, 1], ['new', 12, 1]]);
  assert.equal(await page.locator('.strips circle').count(), 24);
  assert.equal(await page.locator('.strips circle.outlier').count(), 2);
  await page.getByRole('button', { name: 'cycles' }).click();
  await page.waitForFunction(() => location.hash.includes('metric=cycles'));
});

test('a recording that was kept opens with the numbers of the report, and back leads to the jobs', async () => {
  await page.getByRole('button', { name: /^Open plain.sonde/ }).click();
  await page.locator('tr[data-pid="4200"]').waitFor();
  await page.getByRole('link', { name: 'Flame' }).click();
  await page.getByRole('button', { name: 'Table' }).click();
  const truth = report('plain.sonde').functions.rows;
  const text = (r) => [r.name, r.self, r.total].join(' ');
  assert.deepEqual((await rows(page, 'Functions by CPU time')).map(text).sort(), truth.map(text).sort());
  await page.getByRole('link', { name: 'Jobs' }).click();
  await page.locator('.job-title', { hasText: '2001' }).waitFor();
  const harm = await page.evaluate(() => document.querySelectorAll('img, iframe, [onerror], b').length);
  assert.equal(harm, 0);
  assert.deepEqual(page.complaints.filter((c) => !/409/.test(c)), []);
});

test('dark and by keyboard alone', async () => {
  const night = await newPage(browser, { colorScheme: 'dark' });
  await night.goto(`${url}/#/jobs?job=2001`);
  await night.locator('.strips circle').first().waitFor();
  assert.deepEqual(await violations(night), []);
  await night.locator('.job-list button.link', { hasText: '2002' }).focus();
  await night.keyboard.press('Enter');
  await night.locator('.job-title', { hasText: 'Job 2002' }).waitFor();
  await night.close();
});
