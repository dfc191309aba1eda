// The evidence of a run in a real browser: every event leads to its envelope and to the exact bytes of the log; nothing
// an agent says, names or offers is executed or loaded.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runFolder } from '../../src/journal/run-folder.js';
import type { RaspEvent } from '../../src/rasp/event.js';
import { expectAccessible, openDesk, takePicture, type Desk, type Page } from './browser.js';

async function begin(desk: Desk, prompt: string, engine = 'rehearsal'): Promise<string> {
  return (await desk.server.client.create({ engine, prompt, execution_mode: 'interactive' })).run_id;
}

async function journal(desk: Desk, runId: string): Promise<RaspEvent[]> {
  return (
    (await (await desk.server.client.request('GET', `/v1/runs/${runId}/rasp/history`)).json()) as {
      events: RaspEvent[];
    }
  ).events;
}

const succeeded = (page: Page) => page.locator('.facts .state', { hasText: 'succeeded' }).waitFor();

test('each event opens its envelope and the very bytes it came from, marked among those around them', async () => {
  const desk = await openDesk();
  const runId = await begin(desk, '[[answer The first.]] [[tool make all]] [[answer The second.]] [[done {"n":7}]]');
  const page = await desk.open(`/runs/${runId}`);
  await succeeded(page);
  const log = readFileSync(runFolder(desk.site.data, runId).attempt(1).logs.stdout);
  await page.locator('.row-message .proof').first().click();
  const seen: number[] = [];
  for (const event of (await journal(desk, runId)).filter(({ raw_ref: ref }) => ref !== null)) {
    await page.goto(`/runs/${runId}?evidence=${event.seq}`);
    await page.locator(`.evidence[data-seq="${event.seq}"]`).waitFor();
    const { byte_from: from = 0, byte_to: to = 0 } = event.raw_ref ?? {};
    const mark = page.locator('.evidence mark');
    expect(await mark.textContent()).toBe(log.subarray(from, to).toString());
    expect(await page.locator('.evidence .bytes').textContent()).toBe(
      log.subarray(Math.max(0, from - 400), to + 400).toString(),
    );
    expect(await page.locator('.evidence').innerText()).toContain(`"seq": ${event.seq}`);
    expect(await page.locator('.evidence .action').innerText()).toContain(event.source.parser);
    seen.push(event.seq);
  }
  expect(seen.length).toBeGreaterThan(4);
  await expectAccessible(page);
  await takePicture(page, 'run-evidence');
  await page.getByRole('button', { name: 'Next' }).click();
  await page.locator(`.evidence[data-seq="${(seen.at(-1) ?? 0) + 1}"]`).waitFor();
  await page.getByText('Parley wrote this event itself').waitFor();
  await page.getByRole('button', { name: 'Close' }).click();
  expect(await page.locator('.evidence').count()).toBe(0);
  expect(new URL(page.url()).search).toBe('');
}, 90_000);

test('bytes that are no text, and signs that turn or hide text, are shown and do nothing', async () => {
  const desk = await openDesk();
  const runId = await begin(desk, '[[answer safe \u202egnp.exe]] [[utf8]] [[done 1]]');
  const page = await desk.open(`/runs/${runId}`, { dark: true });
  await succeeded(page);
  // The page executes none of it.
  expect(await page.locator('body').innerText()).not.toContain('\u202e');
  await page.locator('.message', { hasText: 'safe ⟨U+202E⟩gnp.exe' }).waitFor();
  const broken = (await journal(desk, runId)).find(({ event }) => event.type === 'raw.stderr');
  await page.goto(`/runs/${runId}?evidence=${broken?.seq}`);
  await page.locator('.evidence mark').waitFor();
  expect(await page.locator('.evidence mark').textContent()).toMatch(/^⟨FF⟩/);
  await takePicture(page, 'run-evidence-dark');
  const turned = (await journal(desk, runId)).find(
    ({ event, data }) => event.type === 'agent.message.final' && String(data['text']).includes('safe'),
  );
  await page.goto(`/runs/${runId}?evidence=${turned?.seq}`);
  await page.locator(`.evidence[data-seq="${turned?.seq}"]`).waitFor();
  expect(await page.locator('.evidence .bytes').textContent()).not.toContain('\u202e');
});

test('the digests are checked, check by check, and the files of the run can be taken home', async () => {
  const desk = await openDesk();
  const runId = await begin(desk, '[[file made.txt]] [[done 1]]');
  const page = await desk.open(`/runs/${runId}`);
  await succeeded(page);
  await page.getByRole('button', { name: 'Check integrity' }).click();
  await page.getByText('Nothing recorded was altered.').waitFor();
  const { checks } = await desk.server.client.verify(runId);
  expect(await page.locator('.checks li').count()).toBe(checks.length);
  await page.getByText('Recorded files: logs, events, result').click();
  await page.getByRole('link', { name: 'attempts/1/stdout.log' }).waitFor();
  await takePicture(page, 'run-proofs');
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Download record' }).click(),
  ]);
  expect(download.suggestedFilename()).toBe(`${runId}.tar`);
  expect(
    readFileSync(await download.path())
      .subarray(257, 262)
      .toString(),
  ).toBe('ustar');
});

const EVIL = [
  '<img src=x onerror="window.pwned=1">',
  '<script>window.pwned=1</script>',
  '<svg onload="window.pwned=1">',
  '<iframe srcdoc="<script>parent.pwned=1</script>"></iframe>',
  '[click](javascript:window.pwned=1)',
  '![i](https://evil.example/i.png)',
  '<a href="javascript:window.pwned=1">x</a>',
  '<style>@import "https://evil.example/x.css"</style>',
  '<form action="https://evil.example"><input></form>',
];

test('text of an agent, a prompt, a file name or an option executes nothing and loads nothing external', async () => {
  const desk = await openDesk();
  const text = EVIL.join(' ');
  const name = '<img src=x onerror=window.pwned=1>.txt';
  const runId = await begin(
    desk,
    `${text} [[answer ${text}]] [[tool echo ${text}]] [[file ${name}]] [[ask ${text} | <img src=x ` +
      'onerror=window.pwned=1> | B]] [[done {"html":"<img src=x onerror=window.pwned=1>"}]]',
  );
  const page = await desk.open(`/runs/${runId}`);
  await page.getByRole('button', { name: /B$/ }).waitFor();
  const harmless = async (): Promise<void> => {
    expect(await page.evaluate<unknown>('window.pwned')).toBeUndefined();
    expect(
      await page
        .locator('main :is(img, script, iframe, style, form[action], object, embed), main svg:not(.chart)')
        .count(),
    ).toBe(0);
    expect(await page.locator('main a[href^="javascript:" i]').count()).toBe(0);
    expect(
      await page.evaluate<number>(
        `[...document.querySelectorAll('main *')].filter((each) => [...each.attributes].some(({ name }) => ` +
          `name.startsWith('on'))).length`,
      ),
    ).toBe(0);
  };
  await harmless();
  // All of it is there, as text.
  await page.locator('.files code', { hasText: name }).waitFor();
  await page.locator('.fold.tool summary').first().click();
  await page.getByRole('button', { name: '<img src=x onerror=window.pwned=1>' }).click();
  await succeeded(page);
  await page.locator('.end pre', { hasText: '<img src=x onerror=window.pwned=1>' }).waitFor();
  await harmless();
  for (const { seq } of (await journal(desk, runId)).filter(({ raw_ref: ref }) => ref !== null).slice(0, 8)) {
    await page.goto(`/runs/${runId}?evidence=${seq}`);
    await page.locator(`.evidence[data-seq="${seq}"]`).waitFor();
    await harmless();
  }
  for (const link of await page.locator('.prose a[href]').all())
    expect(await link.getAttribute('rel')).toContain('noopener');
}, 90_000);

test('the row of an event is visible however its evidence was opened, and Back closes the evidence', async () => {
  const desk = await openDesk();
  const runId = await begin(
    desk,
    `[[stderr 3]] ${Array.from({ length: 60 }, (_, at) => `[[answer Message ${at}, with words.]]`).join(' ')} ` +
      '[[done 1]]',
  );
  const page = await desk.open(`/runs/${runId}`, { width: 390, height: 760 });
  await succeeded(page);
  const events = await journal(desk, runId);
  const at = events.find(({ data }) => JSON.stringify(data).includes('Message 55, with'))?.seq ?? 0;
  await page.goto(`/runs/${runId}?evidence=${at}`);
  await page.locator('.row.chosen', { hasText: 'Message 55' }).waitFor();
  await page.getByRole('button', { name: 'Close' }).click();
  await page.locator('.row.chosen').waitFor({ state: 'detached' });
  await page.goto('/runs');
  await page.locator('[data-run] .open').click();
  await page.locator('.row-message .proof').first().click();
  await page.locator('.evidence').waitFor();
  await page.getByRole('button', { name: 'Next', exact: true }).click();
  await page.goBack();
  await page.locator('.evidence').waitFor({ state: 'detached' });
  expect(new URL(page.url()).pathname).toBe(`/runs/${runId}`);
  await page.goBack();
  await page.waitForURL('**/runs');
});
