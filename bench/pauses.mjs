// A person who looks at a live page: goes from view to view, closes the browser, opens it again.

import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';

const [, , root, address, seconds] = process.argv;
const { chromium } = createRequire(`${root}/web/package.json`)('playwright-core');
const path = execFileSync('sh', ['-c', 'command -v chromium || command -v chromium-browser']).toString().trim();
const until = performance.now() + 1000 * Number(seconds);

async function look() {
  const browser = await chromium.launch({ executablePath: path, args: ['--no-sandbox'] });
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.goto(`${address}#/overview`);
  for (const view of ['overview', 'flame/graph', 'timeline', 'memory']) {
    await page.evaluate((name) => (location.hash = `#/${name}`), view);
    await page.waitForTimeout(1500);
  }
  await browser.close();
}

while (performance.now() < until - 2000) await look();
