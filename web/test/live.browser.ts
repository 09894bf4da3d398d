// The served page against a server that plays its part: snapshot, deltas, a connection that breaks,
// commands. No inline script is allowed.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { after, before, test } from 'node:test';
import type { AddressInfo } from 'node:net';
// @ts-expect-error: plain JavaScript
import { launch, newPage, violations } from './browser.mjs';
import { makeDocument, sample } from './document.ts';

const BUILT = process.env.PAGE_BUILT!;
const HTML = '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>sonde</title><link rel="stylesheet" href="page.css"></head><body><div id="app"></div><script src="page.js"></script></body></html>';

let browser: Awaited<ReturnType<typeof launch>>;
let sent = 0; // deltas so far
const asked: string[] = [];
const commands: unknown[] = [];
let stream: ServerResponse | null = null;
const streams = new Set<ServerResponse>();
let resets = 0;

const live = { title: 'live', live: true, complete: false, duration: 10e6, date: 0, facts: {} };
const whole = decodeHead(sample());

function decodeHead(bytes: Uint8Array): any {
  const length = new DataView(bytes.buffer).getUint32(4, true);
  return JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
}

/** Each adds one sample of main > work to thread 0. */
function delta(sequence: number): string {
  const bytes = makeDocument({
    delta: true, sequence, from: { strings: 11, modules: 2, symbols: 6, stacks: 8 }, strings: [], meta: live,
    events: whole.events, processes: whole.processes, threads: whole.threads,
  }, {
    'cell.event': ['delta', [0]], 'cell.thread': ['delta', [0]], 'cell.stack': ['delta', [2]],
    'cell.count': ['signed', [1]], 'cell.value': ['signed', [0]],
  });
  return `id: ${sequence}\nevent: delta\ndata: ${Buffer.from(bytes).toString('base64')}\n\n`;
}

const server = createServer((request, response) => {
  const url = new URL(request.url!, 'http://x');
  const answer = (type: string, body: string | Uint8Array, status = 200) =>
    response.writeHead(status, { 'Content-Type': type, 'Content-Security-Policy': "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:" }).end(body);
  if (url.pathname.startsWith('/api/') && url.searchParams.get('token') !== 'secret')
    return answer('application/json', '{"ok":false,"error":"no token"}', 403);
  if (url.pathname === '/') return answer('text/html', HTML);
  if (url.pathname === '/page.js') return answer('text/javascript', readFileSync(`${BUILT}/page.js`));
  if (url.pathname === '/page.css') return answer('text/css', readFileSync(`${BUILT}/page.css`));
  if (url.pathname === '/api/snapshot') {
    resets++;
    sent = 0;
    return answer('application/octet-stream', sample({ meta: live }));
  }
  if (url.pathname === '/api/status') return answer('application/json', '{"formats":"sonde, page, pprof and folded"}');
  if (url.pathname === '/api/control') {
    let body = '';
    request.on('data', (d) => (body += d)).on('end', () => {
      commands.push(JSON.parse(body));
      answer('application/json', '{"ok":false,"error":"There is no process 42 any more."}', 409);
    });
    return;
  }
  if (url.pathname === '/api/events') {
    const from = Number(request.headers['last-event-id'] ?? url.searchParams.get('from'));
    asked.push(`from ${from}`);
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write('retry: 100\n\n');
    for (let i = from + 1; i <= sent; i++) response.write(delta(i));
    stream = response;
    streams.add(response);
    response.on('close', () => streams.delete(response));
    return;
  }
  answer('application/json', '{"ok":false}', 404);
});

before(async () => {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  browser = await launch();
});
after(async () => {
  await browser.close();
  server.closeAllConnections();
  server.close();
});

test('a live recording: deltas, a broken connection without a gap, commands', async () => {
  const page = await newPage(browser);
  await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/?token=secret#/flame/table`);
  await page.locator('.view').waitFor();
  // main>work has 2 ms in the sample; its row shows self of `work`.
  const work = () => page.evaluate(() => Number([...document.querySelectorAll('tbody tr')]
    .find((row) => row.querySelector('.function-text')?.textContent === 'work')!.querySelector<HTMLElement>('[data-column=self]')!.dataset.value));
  assert.equal(await work(), 2e6);
  await page.locator('.controls').waitFor();
  for (; !stream; ) await page.waitForTimeout(20);
  for (let i = 0; i < 3; i++) stream!.write(delta(++sent));
  await page.waitForFunction(() => document.querySelector('.link-state.live'));
  await page.waitForFunction(() => [...document.querySelectorAll<HTMLElement>('[data-column=self]')].some((c) => c.dataset.value === '5000000'));
  // The connection breaks; two deltas are made meanwhile.
  const broken = stream!;
  stream = null;
  sent += 2;
  broken.destroy();
  await page.waitForFunction(() => [...document.querySelectorAll<HTMLElement>('[data-column=self]')].some((c) => c.dataset.value === '7000000'));
  assert.deepEqual([asked[0], asked[asked.length - 1], resets], ['from 0', 'from 3', 1]);
  await page.getByRole('button', { name: 'Snapshot' }).click();
  await page.locator('.answer.bad', { hasText: 'There is no process 42' }).waitFor();
  assert.deepEqual(commands, [{ command: 'snapshot', what: 'cpu' }]);
  assert.deepEqual(await page.locator('.download option').evaluateAll((all: HTMLOptionElement[]) => all.map((o) => o.value)), ['sonde', 'page', 'pprof', 'folded']);
  assert.deepEqual(await violations(page), []);
  // A reset asks for the whole again.
  stream!.write('event: reset\ndata: \n\n');
  for (; resets < 2; ) await page.waitForTimeout(20);
  await page.waitForFunction(() => [...document.querySelectorAll<HTMLElement>('[data-column=self]')].some((c) => c.dataset.value === '2000000'));
  stream!.write('event: end\ndata: \n\n');
  await page.locator('.link-state.ended').waitFor();
  assert.deepEqual(page.complaints.filter((c: string) => !/409|ERR_/.test(c)), []);
});

/** As a browser does when another tab is looked at, or this one again. */
const look = (page: any, state: 'visible' | 'hidden') => page.evaluate((to: string) => {
  Object.defineProperty(document, 'visibilityState', { value: to, configurable: true });
  document.dispatchEvent(new Event('visibilitychange'));
}, state);
const until = async (page: any, holds: () => boolean) => {
  for (let i = 0; !holds(); i++) {
    assert.ok(i < 500, `still not so: ${holds}`);
    await page.waitForTimeout(20);
  }
};

test('tabs that nobody looks at leave their connections to others, and have no gap when looked at again', async () => {
  const context = await browser.newContext();
  const tabs: any[] = [];
  for (let i = 0; i < 9; i++) {
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/?token=secret#/flame/table`);
    await page.locator('.link-state.live').waitFor();
    await look(page, 'hidden');
    tabs.push(page);
  }
  // The first two stay to see the end.
  await until(tabs[0], () => streams.size === 2);
  const [first, , third] = tabs;
  const self = (value: number) => (page: any) => page.waitForFunction((v: string) =>
    [...document.querySelectorAll<HTMLElement>('[data-column=self]')].some((c) => c.dataset.value === v), String(value));
  for (let i = 0; i < 3; i++) {
    sent++;
    for (const one of streams) one.write(delta(sent));
  }
  await self(5e6)(first);
  const before = resets;
  asked.length = 0;
  await look(third, 'visible');
  await self(5e6)(third);
  assert.deepEqual([asked, resets], [['from 0'], before]);
  await until(third, () => streams.size === 3);
  await look(third, 'hidden');
  await until(third, () => streams.size === 2);
  // One that was kept gives its place away.
  await look(first, 'visible');
  await look(third, 'visible');
  await look(third, 'hidden');
  await third.waitForTimeout(200);
  assert.equal(streams.size, 3);
  for (const one of streams) one.write('event: end\ndata: \n\n');
  for (const page of [first, tabs[1], third]) await page.locator('.link-state.ended').waitFor();
  await context.close();
});
