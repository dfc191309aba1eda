// Takes the screenshots of the console in docs/images: the built server in a fresh data directory, scripted agents, a
// real browser. Run it with `npm run picture` after the pages have changed.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import chromium from '@sparticuz/chromium';
import { chromium as playwright } from 'playwright-core';
import { createClient } from '../dist/client/index.js';
import { addToken } from '../dist/service/access/tokens.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const site = mkdtempSync(join(tmpdir(), 'parley-picture-'));
const data = join(site, 'data');
// Visible in the screenshots.
const shop = process.env.PARLEY_PICTURE_FOLDER ?? join(site, 'shop');
const standIn = (name) => join(root, 'tests/stand-ins/bin', name);
const env = {
  PATH: process.env.PATH,
  HOME: site,
  PARLEY_DATA: data,
  PARLEY_CODEX_BIN: standIn('codex'),
  PARLEY_GEMINI_BIN: standIn('gemini'),
  PARLEY_CODEX_APP_SERVER_BIN: standIn('codex-app-server-stand-in'),
};

async function until(look) {
  for (;;) {
    const value = await look();
    if (value) return value;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

mkdirSync(shop, { recursive: true });
mkdirSync(data, { recursive: true, mode: 0o700 });
writeFileSync(join(data, 'config.json'), JSON.stringify({ workspace_roots: [shop], shutdown_grace_sec: 0.1 }));
const token = addToken(data, 'ann', { role: 'operator', now: new Date().toISOString() });
const server = spawn(
  process.execPath,
  [join(root, 'bin/parley.js'), 'serve', '--json', '--log-level', 'warn', '--port', '0'],
  { env, cwd: shop, stdio: ['ignore', 'pipe', 'inherit'] },
);
const ended = once(server, 'exit');
let browser;
try {
  const [first] = await once(createInterface(server.stdout), 'line');
  const { url } = JSON.parse(first);
  const client = createClient({ url, token });
  const start = async (engine, prompt, labels, rest = {}) =>
    (await client.create({ engine, prompt, labels, cwd: shop, execution_mode: 'interactive', ...rest })).run_id;
  const becomes = (id, status) => until(async () => (await client.get(id)).status === status);
  const answer = async (id, response) =>
    client.reply(id, { interaction_id: (await client.interaction(id)).interaction_id, response });

  await becomes(
    await start('gemini', 'Describe the checkout for newcomers [[done "docs/checkout.md"]]', { team: 'docs' }),
    'succeeded',
  );
  await becomes(await start('codex', 'Bring the dependencies up to date [[fail]]', { team: 'web' }), 'failed');
  const asked = await start('rehearsal', 'Set up the storage of this project', { team: 'web', ticket: 'SHOP-41' });
  await becomes(asked, 'waiting_user');
  const approval = await start(
    'codex-app-server',
    'Let the cart show its total [[patch src/cart.ts export const total = (items) => items.reduce((sum, { price ' +
      '}) => sum + price, 0);]] [[done "ok"]]',
    { team: 'web' },
  );
  await becomes(approval, 'waiting_user');
  await start('codex', 'Find out why the nightly build is slow [[hang]]', { team: 'infra' });
  const started = await start('rehearsal', 'Move the orders to the new storage', { team: 'web', ticket: 'SHOP-40' });
  await becomes(started, 'waiting_user');

  browser = await playwright.launch({
    executablePath: await chromium.executablePath(),
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    headless: true,
  });
  const look = async (path, options = {}) => {
    const page = await (
      await browser.newContext({ viewport: { width: 1180, height: 760 }, baseURL: url, ...options })
    ).newPage();
    // Like a browser that was not asked yet; a headless one has denied permission itself.
    await page.addInitScript(`Object.defineProperty(Notification, 'permission', { get: () => 'default' })`);
    await page.context().request.post(`${url}/v1/sign-in`, { headers: { origin: url }, data: { token } });
    await page.goto(path);
    return page;
  };
  const takePicture = async (page, name) => {
    await page.evaluate('document.fonts.ready');
    await page.mouse.move(0, 0);
    await page.screenshot({ path: join(root, 'docs/images', `${name}.png`) });
  };
  const inbox = await look('/');
  await inbox.locator('[data-interaction]').nth(2).waitFor();
  await takePicture(inbox, 'console-inbox');
  const phone = await look('/', { viewport: { width: 390, height: 760 }, colorScheme: 'dark', hasTouch: true });
  await phone.locator('[data-interaction]').nth(2).waitFor();
  await takePicture(phone, 'console-phone');
  await answer(started, 'Carefully');
  await becomes(started, 'succeeded');
  const run = await look(`/runs/${started}`);
  await run.locator('.facts .state', { hasText: 'succeeded' }).waitFor();
  await takePicture(run, 'console-run');
  await run.locator('.row-tool button.proof').first().click();
  await run.locator('mark').first().waitFor();
  await takePicture(run, 'console-evidence');
  const runs = await look('/runs');
  await runs.locator('[data-run]').nth(5).waitFor();
  await takePicture(runs, 'console-runs');
} finally {
  await browser?.close();
  server.kill('SIGTERM');
  await ended;
  rmSync(site, { recursive: true, force: true });
}
