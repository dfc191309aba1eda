// The list of runs in a real browser: live, filtered by its address, page by page, by mouse, keyboard and finger.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { addToken } from '../../src/service/access/tokens.js';
import { expectAccessible, openDesk, takePicture, type Desk, type Page } from './browser.js';
import { fillWith } from './fill.js';

const ASK = '[[ask Which database should it be? | Postgres | SQLite]] [[done "ok"]]';
const GONE = /Failed to load resource|ERR_|net::/;

const row = (page: Page, text: string) => page.locator('[data-run]').filter({ hasText: text });
const prompts = async (page: Page): Promise<string[]> => page.locator('[data-run] .open').allTextContents();

// With a turn that never ends, which the server does not await when it stops.
function openHurried(): Promise<Desk> {
  return openDesk(({ data }) => {
    mkdirSync(data, { recursive: true, mode: 0o700 });
    writeFileSync(join(data, 'config.json'), '{"shutdown_grace_sec": 0.1}');
  });
}

// One of each kind.
async function play(desk: Desk): Promise<void> {
  const { client } = desk.server;
  await client.create({ engine: 'rehearsal', prompt: 'Tidy the attic [[done "tidy"]]', labels: { team: 'home' } });
  await client.create({
    engine: 'rehearsal',
    prompt: 'Break the glass [[fail]]',
    labels: { team: 'web', ticket: 'GL-17' },
  });
  await client.create({ engine: 'codex', prompt: 'Count the sheep [[hang]]', permission: 'full' });
  await client.create({
    engine: 'rehearsal',
    prompt: `Set up the storage.\nOn the second line: secrets. ${ASK}`,
    execution_mode: 'interactive',
    labels: { team: 'web' },
  });
  await expect
    .poll(async () => (await client.list()).runs.map(({ status }) => status), { timeout: 30_000 })
    .toEqual(['waiting_user', 'running', 'failed', 'succeeded']);
}

test('each run shows its state, engine, first line, labels, error, age and how long it waits for you', async () => {
  const desk = await openHurried();
  await play(desk);
  const page = await desk.open('/runs');
  await row(page, 'Set up the storage').waitFor();
  expect((await prompts(page)).map((text) => text.slice(0, 8))).toEqual([
    'Set up t',
    'Count th',
    'Break th',
    'Tidy the',
  ]);
  expect(await row(page, 'Set up the storage').textContent()).toMatch(
    /waiting for you.*rehearsal.*Set up the storage\..*team=web.*waiting (?:now|\d+ s)/,
  );
  expect(await row(page, 'Set up').textContent()).not.toContain('second line');
  expect(await row(page, 'Break the glass').textContent()).toMatch(/failed.*ENGINE.*ticket=GL-17/);
  expect(await row(page, 'Count the sheep').textContent()).toMatch(/running.*codex/);
  await page.getByText('● live').waitFor();
  await expectAccessible(page);
  await takePicture(page, 'runs');
  const dark = await desk.open('/runs', { dark: true });
  await row(dark, 'Tidy').waitFor();
  await expectAccessible(dark);
  await takePicture(dark, 'runs-dark');
});

test('a run started elsewhere appears at the top and changes in place; nothing moves under the pointer', async () => {
  const desk = await openDesk();
  const { client } = desk.server;
  await client.create({ engine: 'rehearsal', prompt: `First ${ASK}`, execution_mode: 'interactive' });
  const page = await desk.open('/runs');
  await row(page, 'First').getByText('waiting for you').waitFor();
  const second = await client.create({ engine: 'rehearsal', prompt: `Second ${ASK}`, execution_mode: 'interactive' });
  await row(page, 'Second').getByText('waiting for you').waitFor();
  expect((await prompts(page)).map((text) => text.split(' ')[0])).toEqual(['Second', 'First']);
  // With the pointer over the list, new runs are only counted.
  await row(page, 'Second').hover();
  await client.create({ engine: 'rehearsal', prompt: 'Third [[done 1]]' });
  await page.getByRole('button', { name: '1 new' }).waitFor();
  const pending = await client.interaction(second.run_id);
  await client.reply(second.run_id, { interaction_id: pending.interaction_id, response: 'SQLite' });
  await row(page, 'Second').getByText('succeeded').waitFor();
  expect((await prompts(page)).map((text) => text.split(' ')[0])).toEqual(['Second', 'First']);
  await page.mouse.move(2, 2);
  await row(page, 'Third').getByText('succeeded').waitFor();
  expect((await prompts(page)).map((text) => text.split(' ')[0])).toEqual(['Third', 'Second', 'First']);
});

test('the list shows the total waiting time, and a deleted run disappears', async () => {
  const desk = await openDesk();
  const { client } = desk.server;
  const { run_id: id } = await client.create({
    engine: 'rehearsal',
    prompt: `Asked ${ASK}`,
    execution_mode: 'interactive',
  });
  const page = await desk.open('/runs');
  await row(page, 'Asked').getByText('waiting for you').waitFor();
  await client.create({ engine: 'rehearsal', prompt: 'Left alone [[done 1]]' });
  const waits = row(page, 'Asked').locator('.c-waits');
  await expect.poll(() => waits.textContent(), { timeout: 10_000 }).toMatch(/waiting (?:[2-9]|\d\d) s/);
  await client.reply(id, { interaction_id: (await client.interaction(id)).interaction_id, response: 'SQLite' });
  await row(page, 'Asked').getByText('succeeded').waitFor();
  expect(await waits.textContent()).toMatch(/^waited (?:[2-9]|\d\d) s$/);
  expect((await client.get(id)).waited_ms).toBeGreaterThanOrEqual(2000);
  expect(await row(page, 'Left alone').locator('.c-waits').textContent()).toBe('');
  await client.delete(id);
  await expect.poll(() => row(page, 'Asked').count()).toBe(0);
});

test('filters are in the address: they survive a reload, can come from a label, and apply to new runs', async () => {
  const desk = await openHurried();
  await play(desk);
  const page = await desk.open('/runs');
  await page.getByLabel('State').selectOption('waiting for you');
  await expect.poll(() => prompts(page)).toHaveLength(1);
  expect(new URL(page.url()).search).toBe('?status=waiting_user');
  await page.reload();
  await row(page, 'Set up').waitFor();
  expect(await prompts(page)).toHaveLength(1);
  expect(await page.getByLabel('State').inputValue()).toBe('waiting_user');
  await page.getByRole('button', { name: 'Clear filters' }).click();
  await row(page, 'Break').getByRole('button', { name: 'team=web' }).click();
  await expect.poll(() => prompts(page)).toHaveLength(2);
  expect(new URL(page.url()).searchParams.get('label')).toBe('team=web');
  await page.getByLabel('Engine').selectOption('rehearsal');
  await page.getByLabel('Search prompts').fill('GLASS');
  await expect.poll(() => prompts(page)).toHaveLength(1);
  await page.reload();
  await row(page, 'Break').waitFor();
  expect(await prompts(page)).toHaveLength(1);
  // A run that fits the filter appears; another does not.
  await desk.server.client.create({ engine: 'rehearsal', prompt: 'Plain glass [[done 1]]', labels: { team: 'home' } });
  await desk.server.client.create({ engine: 'rehearsal', prompt: 'Stained glass [[done 1]]', labels: { team: 'web' } });
  await row(page, 'Stained').getByText('succeeded').waitFor();
  expect(await prompts(page)).toHaveLength(2);
  await page.getByLabel('Search prompts').fill('no such words');
  await page.getByText('No runs match').waitFor();
  await page.getByLabel('Label').fill('nonsense');
  await page.keyboard.press('Enter');
  await page.getByText('Write a label as name=value.').waitFor();
});

test('a run that stops matching keeps its place, and shows its new state', async () => {
  const desk = await openDesk();
  const { client } = desk.server;
  const { run_id: id } = await client.create({
    engine: 'rehearsal',
    prompt: `Alone ${ASK}`,
    execution_mode: 'interactive',
  });
  const page = await desk.open('/runs?status=waiting_user');
  await row(page, 'Alone').waitFor();
  await page.getByText('● live').waitFor();
  await client.reply(id, { interaction_id: (await client.interaction(id)).interaction_id, response: 'SQLite' });
  await row(page, 'Alone').getByText('succeeded').waitFor();
});

test('120 runs come page by page, and those that are loaded stay when the connection is lost', async () => {
  const desk = await openDesk((site) =>
    fillWith(
      site,
      Array.from({ length: 120 }, (_, number) => `Task ${number + 1} of many`),
    ),
  );
  const page = await desk.open('/runs', { expects: GONE });
  await page.getByText('50 runs loaded, more available').waitFor();
  await page.getByRole('button', { name: 'Load more' }).click();
  await page.getByText('100 runs loaded').waitFor();
  await desk.restart();
  await page.getByText('Reconnected').waitFor({ timeout: 30_000 });
  await page.getByText('● live').waitFor({ timeout: 30_000 });
  await page.getByRole('button', { name: 'Load more' }).click();
  await expect.poll(() => page.locator('.summary').textContent()).toMatch(/^120 runs●/);
  const shown = await prompts(page);
  expect(shown).toEqual(Array.from({ length: 120 }, (_, number) => `Task ${120 - number} of many`));
  expect(await page.getByRole('button', { name: 'Load more' }).count()).toBe(0);
  expect(await row(page, 'Task 7 of many').textContent()).toContain('ORCHESTRATOR_RESTART_INTERRUPTED');
});

test('when the server restarts, the list shows it and continues without a reload', async () => {
  const desk = await openDesk();
  await desk.server.client.create({ engine: 'rehearsal', prompt: 'Before [[done 1]]' });
  const page = await desk.open('/runs', { expects: GONE });
  await row(page, 'Before').getByText('succeeded').waitFor();
  await page.evaluate('window.marked = true');
  await desk.restart();
  await desk.server.client.create({ engine: 'rehearsal', prompt: 'After [[done 1]]' });
  await row(page, 'After').getByText('succeeded').waitFor({ timeout: 30_000 });
  expect(await page.evaluate('window.marked')).toBe(true);
});

test('a hidden page holds no stream of runs; shown again, it catches up', async () => {
  const desk = await openDesk();
  const page = await desk.open('/runs');
  await page.getByText('● live').waitFor();
  const streams = async () =>
    /^parley_streams (\d+)$/m.exec(await (await desk.server.client.request('GET', '/metrics')).text())?.[1];
  // The number of waiting runs is only polled now and then here.
  await expect.poll(streams).toBe('1');
  const look = (state: string) =>
    page.evaluate(
      `Object.defineProperty(document, 'visibilityState', { get: () => '${state}', configurable: true }); ` +
        `document.dispatchEvent(new Event('visibilitychange'));`,
    );
  await look('hidden');
  await expect.poll(streams).toBe('0');
  await desk.server.client.create({ engine: 'rehearsal', prompt: 'Meanwhile [[done 1]]' });
  await look('visible');
  await row(page, 'Meanwhile').getByText('succeeded').waitFor();
});

test('a question becomes overdue while it is on screen', async () => {
  const desk = await openDesk();
  await desk.server.client.create({
    engine: 'rehearsal',
    prompt: `Soon ${ASK}`,
    execution_mode: 'interactive',
    runtime_options: { session_timeout_sec: 2 },
  });
  const page = await desk.open('/runs');
  await row(page, 'Soon').getByText(', overdue').waitFor();
  await page.getByRole('link', { name: /^Inbox/ }).click();
  await page.locator('.card.overdue').getByText(', overdue').waitFor();
});

test('by keyboard alone: j and k choose, Enter and o open', async () => {
  const desk = await openDesk((site) => fillWith(site, ['One', 'Two', 'Three']));
  const page = await desk.open('/runs');
  await row(page, 'One').waitFor();
  const focused = () => page.evaluate('document.activeElement?.textContent');
  for (const [key, name] of [
    ['j', 'Three'],
    ['j', 'Two'],
    ['j', 'One'],
    ['j', 'One'],
    ['k', 'Two'],
  ] as const) {
    await page.keyboard.press(key);
    expect(await focused()).toBe(name);
  }
  const id = await row(page, 'Two').getAttribute('data-run');
  await page.keyboard.press('Enter');
  await page.waitForURL(`**/runs/${id}`);
  await page.goBack();
  await row(page, 'One').waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('o');
  await page.waitForURL(/\/runs\/run_/);
});

test('what agents and people wrote is text, whatever is in it', async () => {
  const desk = await openDesk();
  const evil = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>';
  await desk.server.client.create({
    engine: 'rehearsal',
    prompt: `${evil} "onmouseover=window.hacked=1 [[done 1]]`,
    labels: { '<b>team</b>': 'javascript:window.hacked=1', evil },
  });
  const page = await desk.open('/runs');
  await row(page, 'onerror').getByText('succeeded').waitFor();
  await page.getByRole('button', { name: /javascript:/ }).click();
  await expect.poll(() => new URL(page.url()).searchParams.get('label')).toBe('<b>team</b>=javascript:window.hacked=1');
  await row(page, 'onerror').waitFor();
  expect(await page.evaluate('"hacked" in window')).toBe(false);
  expect(await page.locator('main img, main script, main b').count()).toBe(0);
});

test('on a phone the runs are cards that fit, and a tap opens one', async () => {
  const desk = await openHurried();
  await play(desk);
  const page = await desk.open('/runs', { width: 390, height: 844, touch: true });
  await row(page, 'Tidy').waitFor();
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
  await expectAccessible(page);
  await takePicture(page, 'runs-phone');
  await row(page, 'Tidy').tap();
  await page.waitForURL(/\/runs\/run_/);
});

test('a viewer sees the list without actions; an empty list explains the next step', async () => {
  const desk = await openDesk();
  const token = addToken(desk.site.data, 'vera', { role: 'viewer', now: '2026-01-01T00:00:00.000Z' });
  const page = await desk.open('/runs', { token });
  await page.getByText('No runs yet.').waitFor();
  await page.getByText('An operator can start a run').waitFor();
  expect(await page.getByRole('link', { name: /run$/i }).count()).toBe(0);
  const operator = await desk.open('/runs');
  await operator.getByRole('link', { name: 'Start a run' }).waitFor();
  await takePicture(operator, 'runs-empty');
  await desk.server.client.create({ engine: 'rehearsal', prompt: 'Tidy [[done 1]]' });
  await row(page, 'Tidy').getByText('succeeded').waitFor();
});

test('a list that the server fails to give says so at once, and can be asked for again', async () => {
  const desk = await openDesk();
  await desk.server.client.create({ engine: 'rehearsal', prompt: 'Find me [[done 1]]' });
  const page = await desk.open('/', { expects: /Failed to load resource/ });
  await page.route('**/v1/runs?*', (route) =>
    route.fulfill({
      status: 500,
      contentType: 'application/json',
      body: '{"error":{"code":"INTERNAL","message":"a defect"}}',
    }),
  );
  await page.getByRole('link', { name: 'Runs', exact: true }).click();
  await page.getByText('Could not load the runs: a defect').waitFor({ timeout: 5000 });
  await page.unroute('**/v1/runs?*');
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByText('Find me').waitFor();
  expect(await page.getByRole('alert').count()).toBe(0);
});

test('every page leads to the documentation of the API, which has its landmark', async () => {
  const desk = await openDesk();
  const page = await desk.open('/');
  await page.getByRole('link', { name: 'API documentation' }).click();
  await page.getByRole('main').waitFor();
  expect(new URL(page.url()).pathname).toBe('/docs');
  await expectAccessible(page);
});

test('task lists and code blocks of an agent are accessible to screen readers', async () => {
  const desk = await openDesk();
  const long = 'x'.repeat(400);
  const { run_id: id } = await desk.server.client.create({
    engine: 'rehearsal',
    prompt: `[[answer - [x] one\n- [ ] two\n\n\`\`\`\n${long}\n\`\`\`\n]] [[done 1]]`,
  });
  const page = await desk.open(`/runs/${id}`);
  await page.locator('.message pre').waitFor();
  expect(
    await page.locator('.message input').evaluateAll((all) => all.map((box) => box.getAttribute('aria-label'))),
  ).toEqual(['done', 'to do']);
  expect(await page.locator('.message pre').getAttribute('tabindex')).toBe('0');
  await expectAccessible(page);
});
