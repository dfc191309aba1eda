// The engines page in a real browser: installed engines, advice for the others, and parser figures as text and bars.
import { expect, test } from 'vitest';
import { addToken } from '../../src/service/access/tokens.js';
import { expectAccessible, openDesk, takePicture, type Desk, type Page } from './browser.js';

const GONE = /Failed to load resource|ERR_|net::/;
const card = (page: Page, name: string) => page.locator(`[data-engine="${name}"]`);

async function play(desk: Desk, engine: string, prompt: string): Promise<void> {
  const { run_id: id } = await desk.server.client.create({ engine, prompt, permission: 'full' });
  await expect
    .poll(async () => (await desk.server.client.get(id)).status, { timeout: 30_000 })
    .toMatch(/succeeded|failed/);
}

test('each engine says whether it is ready, which version it is, and what to do', async () => {
  const desk = await openDesk((site) => ({ ...site, env: { ...site.env, PARLEY_GEMINI_BIN: '/no/such/gemini' } }));
  const page = await desk.open('/engines');
  await card(page, 'rehearsal').getByText('✓ ready').waitFor();
  expect(await card(page, 'rehearsal').textContent()).toContain('not needed');
  expect(await card(page, 'codex').textContent()).toMatch(/not logged in.*tested with0\.166\.0.*codex login/s);
  expect(await card(page, 'gemini').textContent()).toMatch(
    /not installed.*PARLEY_GEMINI_BIN=\/no\/such\/gemini is not a program/,
  );
  await page.getByText('No turn has ended yet.').waitFor();
});

test('figures of the parsers are shown as text and bars, with the meaning of a low rate', async () => {
  const desk = await openDesk();
  for (const prompt of ['[[answer Hi.]] [[done 1]]', '[[utf8]] [[stderr 3]] [[done 1]]', '[[exit0]]', '[[fail]]'])
    await play(desk, 'rehearsal', prompt);
  await play(desk, 'codex', '[[answer Hello.]]');
  const page = await desk.open('/engines');
  const rehearsal = page.locator('.profile-card').filter({ hasText: 'rehearsal' });
  await rehearsal.getByText('4 turns ended').waitFor();
  const { profiles } = (await (await desk.server.client.request('GET', '/v1/metrics/parsers')).json()) as {
    profiles: { engine: string; parsed: number; units: number; unknown: Record<string, number> }[];
  };
  const profile = profiles.find(({ engine }) => engine === 'rehearsal');
  expect(await rehearsal.textContent()).toContain(`${profile?.parsed} of ${profile?.units} pieces recognized`);
  for (const reason of Object.keys(profile?.unknown ?? {})) expect(await rehearsal.textContent()).toContain(reason);
  expect(Object.keys(profile?.unknown ?? {})).not.toEqual([]);
  expect(await page.locator('.profile-card').count()).toBe(profiles.length);
  expect(await rehearsal.locator('svg rect.value').first().getAttribute('width')).toMatch(/^\d/);
  await page.getByText('A low rate means').waitFor();
  await expectAccessible(page);
  await takePicture(page, 'engines');
  const dark = await desk.open('/engines', { dark: true });
  await dark.getByText('4 turns ended').waitFor();
  await expectAccessible(dark);
  await takePicture(dark, 'engines-dark');
  const phone = await desk.open('/engines', {
    width: 390,
    height: 844,
    touch: true,
    token: addToken(desk.site.data, 'vera', { role: 'viewer', now: '2026-01-01T00:00:00.000Z' }),
  });
  await phone.getByText('4 turns ended').waitFor();
  expect(await phone.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
  await phone.locator('.profile-card').first().scrollIntoViewIfNeeded();
  await takePicture(phone, 'engines-phone');
});

test('a low hit rate, oddities and names that are no names are shown as they are, as text', async () => {
  const desk = await openDesk();
  const page = await desk.open('/');
  const evil = '<img src=x onerror="window.hacked=1">';
  const engines = [
    {
      name: 'codex',
      found: true,
      program: `/opt/${evil}`,
      version: '0.167.0',
      proved_version: '0.166.0',
      login: true,
      advice: `mind ${evil}`,
    },
  ];
  const profiles = [
    {
      engine: 'codex',
      profile: 'codex_ndjson',
      turns: 1200,
      units: 1000,
      parsed: 842,
      fallbacks: 158,
      hit_rate: 0.842,
      warnings: { UNKNOWN_EVENT_TYPE: 150, [evil]: 8 },
      unknown: { NO_SUCCESS_SIGNAL: 3 },
    },
    {
      engine: 'gemini',
      profile: 'gemini_json',
      turns: 1,
      units: 100_000,
      parsed: 99_999,
      fallbacks: 1,
      hit_rate: 0.99999,
      warnings: {},
      unknown: {},
    },
  ];
  await page.route('**/v1/engines', (route) => route.fulfill({ json: { engines, defaults: {} } }));
  await page.route('**/v1/metrics/parsers', (route) => route.fulfill({ json: { profiles } }));
  await page.getByRole('link', { name: 'Engines' }).click();
  await page.getByText('84.2 %').waitFor();
  await page.getByText('hit rate: low').waitFor();
  expect(await page.locator('.profile-card').first().textContent()).toMatch(
    /1,200 turns ended, 3 of them without a clear result.*NO_SUCCESS_SIGNAL3.*UNKNOWN_EVENT_TYPE150/s,
  );
  // A single missing one must not be rounded away.
  await page.getByText('99.9 %').waitFor();
  await page.getByText('not the tested version').waitFor();
  expect(await page.locator('main img').count()).toBe(0);
  expect(await page.evaluate('"hacked" in window')).toBe(false);
  await expectAccessible(page);
  await takePicture(page, 'engines-low');
});

test('the figures stay while the server is down, and update when it is back', async () => {
  const desk = await openDesk();
  const page = await desk.open('/engines', { expects: GONE });
  await page.getByText('No turn has ended yet.').waitFor();
  await desk.restart();
  await play(desk, 'rehearsal', '[[done 1]]');
  await page.getByText('1 turn ended').waitFor({ timeout: 40_000 });
});
