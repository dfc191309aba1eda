// Starting a run in a real browser: the offered engines, errors at their fields, and that a run starts only once.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { addToken } from '../../src/service/access/tokens.js';
import type { Site } from '../support/command.js';
import { expectAccessible, openDesk, takePicture, type Page } from './browser.js';

const GONE = /Failed to load resource|ERR_|net::/;

// No CLI is installed.
function withoutEngines({ env, ...site }: Site): Site {
  const nowhere = join(site.root, 'nowhere');
  mkdirSync(nowhere);
  return { ...site, env: { PATH: nowhere, HOME: env['HOME'] ?? '', LANG: 'C.UTF-8', PARLEY_DATA: site.data } };
}

const prompt = (page: Page) => page.getByLabel('What should the agent do?');
const engine = (page: Page, name: string) => page.getByRole('radio', { name: new RegExp(`^${name}(?: |$)`) });
const pressStart = (page: Page) => page.getByRole('button', { name: /^Start/ }).click();

test('the form starts the run as filled in and opens it; the next form keeps engine and folder only', async () => {
  const desk = await openDesk();
  const page = await desk.open('/runs');
  await page.getByRole('link', { name: 'New run' }).click();
  await engine(page, 'rehearsal').check();
  await page.getByRole('radio', { name: /^Read only/ }).check();
  expect(await page.getByRole('radio', { name: /^Interactive/ }).isChecked()).toBe(true);
  await page.getByLabel('Folder (optional)').fill(desk.site.cwd);
  await prompt(page).fill('Tidy the attic [[ask Now? | yes | no]] [[done 1]]');
  await page.getByText('More options').click();
  await page.getByLabel('Model').fill('some-model');
  await page.getByLabel('Labels').fill('team=home\nticket=A=7\n');
  await page.getByLabel('Question is overdue after').fill('60');
  await page.getByLabel('Maximum number of turns').fill('1e');
  await pressStart(page);
  await page.getByText('Enter a number above zero.').waitFor();
  await page.getByLabel('Maximum number of turns').fill('5');
  await page.getByLabel('Only a person may answer').uncheck();
  await page.getByLabel('When a question is overdue').selectOption("use the question's default");
  await expectAccessible(page);
  await takePicture(page, 'new-run');
  await pressStart(page);
  await page.waitForURL(/\/runs\/run_/);
  const id = page.url().split('/').at(-1) ?? '';
  const run = await desk.server.client.get(id);
  expect(run).toMatchObject({
    engine: 'rehearsal',
    permission: 'read-only',
    execution_mode: 'interactive',
    cwd: desk.site.cwd,
    model: 'some-model',
    labels: { team: 'home', ticket: 'A=7' },
  });
  const { events } = (await (await desk.server.client.request('GET', `/v1/runs/${id}/rasp/history`)).json()) as {
    events: { data: { runtime_options?: object } }[];
  };
  expect(events[0]?.data.runtime_options).toMatchObject({
    session_timeout_sec: 60,
    max_attempt: 5,
    interactive_require_user_reply: false,
    auto_decide_policy: 'use_default',
    turn_timeout_sec: null,
  });
  await page.goto('/new');
  await engine(page, 'rehearsal').waitFor();
  expect([
    await engine(page, 'rehearsal').isChecked(),
    await page.getByRole('radio', { name: /^Read only/ }).isChecked(),
    await page.getByLabel('Folder (optional)').inputValue(),
    await prompt(page).inputValue(),
  ]).toEqual([true, false, desk.site.cwd, '']);
  await page.getByText('Same as last time.').waitFor();
});

test('the form starts with the defaults of the settings and sends the values that it shows', async () => {
  const desk = await openDesk((site) => {
    const model = { rehearsal: 'usual-model' };
    const defaults = { mode: 'auto', permission: 'read-only', model, idle_timeout_sec: 77 };
    mkdirSync(site.data, { recursive: true });
    writeFileSync(join(site.data, 'config.json'), JSON.stringify({ defaults }));
    return site;
  });
  const page = await desk.open('/new');
  await engine(page, 'rehearsal').check();
  const isChecked = (name: RegExp) => page.getByRole('radio', { name }).isChecked();
  expect([await isChecked(/^Auto/), await isChecked(/^Read only/)]).toEqual([true, true]);
  await page.getByText('More options').click();
  expect(await page.getByLabel('Model').getAttribute('placeholder')).toBe('usual-model');
  expect(await page.getByLabel('Idle time limit').getAttribute('placeholder')).toBe('77');
  await page.getByRole('radio', { name: /^Interactive/ }).check();
  await prompt(page).fill('Sweep the floor [[done 1]]');
  await pressStart(page);
  await page.waitForURL(/\/runs\/run_/);
  expect(await desk.server.client.get(page.url().split('/').at(-1) ?? '')).toMatchObject({
    execution_mode: 'interactive',
    permission: 'read-only',
    model: 'usual-model',
  });
});

test('without any CLI the rehearsal is offered with an example that asks; the others say how to get them', async () => {
  const desk = await openDesk(withoutEngines);
  const page = await desk.open('/new');
  await page.getByText('No agent is installed yet.').waitFor();
  expect(await engine(page, 'rehearsal').isChecked()).toBe(true);
  for (const name of ['codex', 'gemini', 'opencode', 'iflow'])
    expect(await engine(page, name).isDisabled(), name).toBe(true);
  await page.getByText('codex not found: npm install -g @openai/codex').first().waitFor();
  await expectAccessible(page);
  await takePicture(page, 'new-run-empty');
  await page.getByRole('button', { name: 'Fill in an example' }).click();
  await page.keyboard.press('Control+Enter');
  await page.waitForURL(/\/runs\/run_/);
  await page.goto('/');
  await page.getByRole('button', { name: 'SQLite' }).click();
  await page.getByText('Answer accepted').waitFor();
});

test('errors of the page and of the server appear at their field and can be corrected there', async () => {
  const desk = await openDesk();
  const page = await desk.open('/new', { expects: /400/ });
  await engine(page, 'rehearsal').check();
  await pressStart(page);
  await page.getByText('Describe what the agent should do.').waitFor();
  await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('field-prompt');
  await prompt(page).fill('Tidy [[done 1]]');
  await page.getByLabel('Folder (optional)').fill('/no/such/folder');
  await pressStart(page);
  await expect.poll(() => page.locator('#problem-cwd').textContent()).toContain('/no/such/folder');
  await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('field-cwd');
  await takePicture(page, 'new-run-error');
  await page.getByLabel('Folder (optional)').fill('relative/folder');
  await pressStart(page);
  await expect.poll(() => page.locator('#problem-cwd').textContent()).toContain('absolute');
  await page.getByLabel('Folder (optional)').fill('');
  await page.getByText('More options').click();
  await page.getByLabel('Maximum number of turns').fill('2.5');
  await page.getByLabel('Labels').fill('nonsense');
  await page.getByText('More options').click();
  await pressStart(page);
  await page.getByText('Write one name=value per line.').waitFor();
  await page.getByLabel('Labels').fill('');
  await pressStart(page);
  await expect.poll(() => page.locator('#problem-max_attempt').textContent()).toContain('cannot be 2.5');
  await expectAccessible(page);
  await page.getByLabel('Maximum number of turns').fill('2');
  await pressStart(page);
  await page.waitForURL(/\/runs\/run_/);
  expect((await desk.server.client.list()).runs).toHaveLength(1);
});

test('pressed twice it is started once', async () => {
  const desk = await openDesk();
  const page = await desk.open('/new');
  await engine(page, 'rehearsal').check();
  await prompt(page).fill('Once [[done 1]]');
  await page.getByRole('button', { name: /^Start/ }).dblclick();
  await page.waitForURL(/\/runs\/run_/);
  expect((await desk.server.client.list()).runs).toHaveLength(1);
});

test('a run is started once even if the response of the server is lost', async () => {
  const desk = await openDesk();
  const page = await desk.open('/new', { expects: GONE });
  // The run is created, but its response is lost.
  let cuts = 0;
  await page.route('**/v1/runs', async (route) => {
    if (route.request().method() !== 'POST' || cuts === 2) return route.continue();
    cuts += 1;
    await route.fetch();
    return route.abort('connectionreset');
  });
  await engine(page, 'rehearsal').check();
  await prompt(page).fill('Once [[done 1]]');
  await prompt(page).press('Control+Enter');
  await page.waitForURL(/\/runs\/run_/, { timeout: 30_000 });
  expect(cuts).toBe(2);
  expect((await desk.server.client.list()).runs).toHaveLength(1);
});

test('starting again after giving up returns the same run if it was created', async () => {
  const desk = await openDesk();
  const page = await desk.open('/new', { expects: /404/ });
  await page.route(
    '**/v1/runs',
    async (route) => {
      await route.fetch();
      await route.fulfill({
        status: 404,
        json: { error: { code: 'NOT_FOUND', message: 'something between us broke' } },
      });
    },
    { times: 1 },
  );
  await engine(page, 'rehearsal').check();
  await prompt(page).fill('Once [[done 1]]');
  await pressStart(page);
  await page.getByText('something between us broke').waitFor();
  await pressStart(page);
  await page.waitForURL(/\/runs\/run_/);
  expect((await desk.server.client.list()).runs).toHaveLength(1);
  // Submitted again on purpose, it is another run.
  await page.goto('/new');
  await prompt(page).fill('Once [[done 1]]');
  await pressStart(page);
  await page.waitForURL(/\/runs\/run_/);
  expect((await desk.server.client.list()).runs).toHaveLength(2);
});

test('by keyboard alone', async () => {
  const desk = await openDesk();
  const page = await desk.open('/new');
  await engine(page, 'rehearsal').focus();
  await page.keyboard.press('Space');
  // From the engines to the prompt, the folder, the mode and the permission, across any controls in between.
  const reach = async (id: string): Promise<void> => {
    for (let steps = 0; steps < 8; steps += 1) {
      await page.keyboard.press('Tab');
      if ((await page.evaluate('document.activeElement.id || document.activeElement.closest("fieldset")?.id')) === id)
        return;
    }
    throw new Error(`Tab does not lead to ${id}`);
  };
  await reach('field-prompt');
  await page.keyboard.type('Tidy [[done 1]]');
  await reach('field-cwd');
  await reach('field-mode');
  await page.keyboard.press('ArrowDown');
  await reach('field-permission');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Control+Enter');
  await page.waitForURL(/\/runs\/run_/);
  expect((await desk.server.client.list()).runs[0]).toMatchObject({
    engine: 'rehearsal',
    execution_mode: 'auto',
    permission: 'full',
  });
});

test('on a phone and in the dark the form fits', async () => {
  const desk = await openDesk();
  const page = await desk.open('/new', { width: 390, height: 844, touch: true, dark: true });
  await engine(page, 'rehearsal').waitFor();
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
  await expectAccessible(page);
  await takePicture(page, 'new-run-phone');
});

test('a user who may not start runs sees why, and gets no form', async () => {
  const desk = await openDesk();
  for (const role of ['viewer', 'replier'] as const) {
    const page = await desk.open('/new', {
      token: addToken(desk.site.data, `a ${role}`, { role, now: '2026-01-01T00:00:00.000Z' }),
    });
    await page.getByText('requires the operator role').waitFor();
    expect(await page.getByRole('link', { name: 'New run' }).count()).toBe(0);
    expect(await page.locator('form').count()).toBe(0);
  }
});
