// The page of a run in a real browser: the live conversation, questions answered in place, and the actions on a run.
import { expect, test } from 'vitest';
import { parley } from '../support/command.js';
import { Gate } from '../support/gate.js';
import { expectAccessible, openDesk, signIn, takePicture, type Desk, type Page } from './browser.js';

const ASK = '[[ask Which database should it be? | Postgres | SQLite]]';
const GONE = /Failed to load resource|ERR_CONNECTION|net::/;

async function begin(desk: Desk, prompt: string, engine = 'rehearsal', rest: object = {}): Promise<string> {
  return (await desk.server.client.create({ engine, prompt, execution_mode: 'interactive', ...rest })).run_id;
}

const state = (page: Page, name: string) => page.locator('.facts .state', { hasText: name }).waitFor();

test('a conversation shows live: streamed text, a line per tool call, the question in place, the result', async () => {
  const desk = await openDesk();
  const runId = await begin(desk, 'Tidy up the tests', 'rehearsal', { labels: { team: 'storage' } });
  const page = await desk.open(`/runs/${runId}`);
  await page.getByRole('heading', { name: 'Tidy up the tests' }).waitFor();
  await page.locator('.message', { hasText: 'This is a rehearsal: a script plays an agent' }).waitFor();
  // The whole message has replaced its pieces.
  await expect.poll(() => page.locator('.message').count()).toBe(1);
  const tool = page.locator('.fold.tool');
  await tool.getByText('ls -la').waitFor();
  await expect.poll(() => tool.locator('summary').innerText()).toMatch(/shell[\s\S]*done · exit 0/);
  await tool.locator('summary').click();
  await tool.getByText('(only played, not run)').waitFor();
  await state(page, 'waiting for you');
  expect(await page.locator('.facts').innerText()).toContain('team=storage');
  await expectAccessible(page);
  await takePicture(page, 'run-question');
  await page.getByRole('button', { name: 'Carefully' }).click();
  await page.getByText('Answered by').waitFor();
  expect(await page.locator('.answer .said').innerText()).toBe('Carefully');
  await page.getByRole('heading', { name: /Turn 2/ }).waitFor();
  await state(page, 'succeeded');
  await page.getByRole('heading', { name: 'Succeeded' }).waitFor();
  expect(await page.locator('.end pre').innerText()).toContain('"rehearsal": true');
  const chart = await page.locator('svg.chart').getAttribute('aria-label');
  expect(chart).toBe(
    'State chart. Now succeeded. Path: queued to running 2 times, running to waiting for you, ' +
      'waiting for you to queued, running to succeeded.',
  );
  expect(await page.locator('.timeline li').count()).toBe(2);
  expect(await page.locator('.facts').innerText()).toMatch(/waited \d.* for you/);
  await expectAccessible(page);
  await takePicture(page, 'run-ended');
});

test('an approval shows the exact diff, is decided in place, and stays there with its decision', async () => {
  const desk = await openDesk();
  const runId = await begin(
    desk,
    'Greet. [[reason I should greet them]] [[say I will write a **greeting**.]] [[run echo hi]] [[patch f.txt ' +
      'hello]] [[say Written.]]',
    'codex-app-server',
  );
  const page = await desk.open(`/runs/${runId}`, { dark: true });
  await page.locator('.card .diff .added', { hasText: 'hello' }).waitFor();
  await expectAccessible(page);
  await takePicture(page, 'run-approval-dark');
  await page.getByRole('button', { name: /Approve$/ }).click();
  await page.locator('.answer .said', { hasText: 'Approve' }).waitFor();
  await page.locator('.files', { hasText: 'f.txt' }).waitFor();
  // Its turn has ended; the card does not repeat the agent's last message.
  await page.getByText('The agent is waiting for your reply.').waitFor();
  expect(await page.locator('.row:not(.row-user)', { hasText: 'Written.' }).count()).toBe(1);
  await page.locator('.fold.reasoning summary').first().click();
  await page.getByText('I should greet them', { exact: true }).first().waitFor();
  await page.getByLabel('Actions').getByRole('button', { name: 'Finish' }).click();
  await page.getByText('Finished by').waitFor();
  await state(page, 'succeeded');
});

test('a run is canceled after it was asked once more, then tried again', async () => {
  const desk = await openDesk();
  const runId = await begin(desk, '[[answer I begin.]] [[hang]]');
  const page = await desk.open(`/runs/${runId}`);
  await state(page, 'running');
  await page.getByRole('button', { name: 'Cancel…' }).click();
  await page.getByRole('button', { name: 'No', exact: true }).click();
  expect((await desk.server.client.get(runId)).status).toBe('running');
  await page.getByRole('button', { name: 'Cancel…' }).click();
  await page.getByRole('button', { name: 'Yes, cancel the run' }).click();
  await state(page, 'canceled');
  await page.getByRole('heading', { name: /Canceled by/ }).waitFor();
  await page.getByRole('button', { name: 'Retry' }).click();
  await page.waitForURL((url) => url.pathname.startsWith('/runs/') && !url.pathname.endsWith(runId));
  await state(page, 'running');
  await desk.server.client.cancel(new URL(page.url()).pathname.split('/').at(-1) ?? '');
  await state(page, 'canceled');
});

test('an ended run is continued, a run is forked; refusals appear beside the button', async () => {
  const desk = await openDesk();
  const runId = await begin(desk, '[[done 1]]', 'codex');
  const page = await desk.open(`/runs/${runId}`, { expects: /409/ });
  await state(page, 'succeeded');
  await page.getByRole('button', { name: 'Fork…' }).click();
  await page.getByLabel('What should the copy of this conversation do next?').fill('[[answer From the copy.]]');
  await page.getByRole('button', { name: 'Fork', exact: true }).click();
  await page.getByText('From the copy.').first().waitFor();
  await page.locator('.facts', { hasText: 'forked from' }).waitFor();
  await page.locator('.facts a').click();
  await page.waitForURL(`**/runs/${runId}`);
  await page.getByRole('button', { name: 'Continue…' }).click();
  await page.keyboard.type('[[answer Going on.]]');
  await page.keyboard.press('Control+Enter');
  await page.locator('.facts', { hasText: 'continues' }).waitFor();
  // It waits in that session.
  await state(page, 'waiting for you');
  const next = page.url().split('/').at(-1) ?? '';
  await page.goto(`/runs/${runId}`);
  await page.getByRole('button', { name: 'Continue…' }).click();
  await page.keyboard.type('x');
  await page.getByRole('button', { name: 'Continue', exact: true }).click();
  await page.locator('.actions .bad', { hasText: next }).waitFor();
  // Not offered where it is impossible.
  const other = await begin(desk, '[[done 1]]');
  await page.goto(`/runs/${other}`);
  await page.getByRole('button', { name: 'Continue…' }).waitFor();
  await page.waitForLoadState('networkidle');
  expect(await page.getByRole('button', { name: 'Fork…' }).count()).toBe(0);
}, 90_000);

test('a failure shows its unanswered question; an unknown run is reported as not found', async () => {
  const desk = await openDesk();
  const runId = await begin(desk, '[[answer Working on it.]] [[stderr 3]] [[fail]]');
  const page = await desk.open(`/runs/${runId}`, { expects: /404/ });
  await page.getByRole('heading', { name: 'Failed: ENGINE_TURN_FAILED' }).waitFor();
  // The two streams are two pipes: output of the other one may appear between its lines.
  for (const fold of await page.locator('.fold.raw summary').all()) await fold.click();
  await page.getByText('rehearsal: line 3 of 3').waitFor();
  await expectAccessible(page);
  await takePicture(page, 'run-failed');
  const auto = await begin(desk, ASK, 'rehearsal', { execution_mode: 'auto' });
  await page.goto(`/runs/${auto}`);
  await page.getByRole('heading', { name: 'Failed: AUTO_MODE_CANNOT_ASK' }).waitFor();
  await page.locator('.unanswered', { hasText: 'Which database should it be?' }).waitFor();
  await page.goto('/runs/run_01M7HEENCB3Q72PDFDW48J2F4K');
  await page.getByText('There is no run with this ID.').waitFor();
});

test('a restart of a killed server is noticed, and the run view continues where it was', async () => {
  const desk = await openDesk();
  const runId = await begin(
    desk,
    `Set up the storage. [[answer First things first.]] ${ASK} [[answer So be it.]] [[done "ok"]]`,
  );
  const page = await desk.open(`/runs/${runId}`, { expects: GONE });
  await page.getByRole('button', { name: 'SQLite' }).waitFor();
  await desk.restart();
  await page.getByText('Reconnected.').waitFor();
  expect(await page.locator('.message', { hasText: 'First things first.' }).count()).toBe(1);
  await page.getByRole('button', { name: 'SQLite' }).click();
  await page.locator('.message', { hasText: 'So be it.' }).waitFor();
  await state(page, 'succeeded');
  expect(await page.locator('article.row-question').count()).toBe(1);
});

test('two who answer at once see who won', async () => {
  const desk = await openDesk();
  const runId = await begin(desk, `${ASK} [[done "ok"]]`);
  const [one, two] = [await desk.open(`/runs/${runId}`), await desk.open(`/runs/${runId}`, { expects: /409/ })];
  for (const page of [one, two]) await page.getByRole('button', { name: 'SQLite' }).waitFor();
  // The second request arrives when the first was accepted.
  const sent = new Gate();
  await two.route('**/interaction/reply', async (route) => {
    sent.open();
    await one.getByRole('button', { name: 'SQLite' }).click();
    await state(one, 'succeeded');
    await route.continue();
  });
  await two.getByRole('button', { name: 'Postgres' }).click();
  await sent.opened;
  for (const page of [one, two]) await page.locator('.answer .said', { hasText: 'SQLite' }).waitFor();
  await two.getByText('Your answer came too late.').waitFor();
  await state(two, 'succeeded');
  expect(await one.getByText('Your answer came too late.').count()).toBe(0);
});

test('a viewer looks, and is offered nothing that it may not do', async () => {
  const desk = await openDesk();
  const runId = await begin(desk, `${ASK} [[done "ok"]]`);
  const { stdout } = await parley(desk.site, ['token', 'add', 'anna', '--role', 'viewer']);
  const page = await desk.open(`/runs/${runId}`);
  await signIn(page.context(), desk.server.url, stdout.trim());
  await page.goto(`/runs/${runId}`);
  await page.getByText('You can view this question but not answer it.').waitFor();
  expect(await page.getByLabel('Actions').getByRole('button').count()).toBe(0);
  expect(await page.getByRole('button', { name: 'SQLite' }).count()).toBe(0);
  expect(await page.getByRole('button', { name: 'Check integrity' }).count()).toBe(1);
});

test('everything is done by keys alone', async () => {
  const desk = await openDesk();
  const runId = await begin(desk, `[[tool make all]] ${ASK} [[done "ok"]]`);
  const page = await desk.open(`/runs/${runId}`);
  await page.getByRole('button', { name: 'SQLite' }).waitFor();
  await page.locator('.scroll').focus();
  const focusOn = async (wanted: string): Promise<void> => {
    for (let presses = 0; presses < 60; presses += 1) {
      if (await page.evaluate<boolean>(`document.activeElement?.matches(${JSON.stringify(wanted)}) ?? false`)) return;
      await page.keyboard.press('Tab');
    }
    throw new Error(`Tab does not lead to ${wanted}`);
  };
  await focusOn('.fold.tool > summary');
  await page.keyboard.press('Enter');
  await page.locator('.fold.tool[open]').waitFor();
  await focusOn('.row-tool .proof');
  await page.keyboard.press('Enter');
  await page.locator('.evidence[data-seq]:focus').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('.row-tool .proof:focus').waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('2');
  await page.locator('.answer .said', { hasText: 'SQLite' }).waitFor();
  await state(page, 'succeeded');
});

test('on a phone nothing is wider than the window, and the panel takes all of it', async () => {
  const desk = await openDesk();
  const long = 'a_very_long_word_without_any_place_to_break_'.repeat(6);
  const runId = await begin(
    desk,
    `Look at ${long} and tell me. [[answer See \`${long}\` and **this**:\n\n| a | b |\n|---|---|\n| 1 | ${long} ` +
      `|\n]] [[tool cat ${long}]] ${ASK}`,
  );
  const page = await desk.open(`/runs/${runId}`, { width: 390, height: 780, touch: true });
  await page.getByRole('button', { name: 'SQLite' }).waitFor();
  const widths = () =>
    page.evaluate<number[]>(`[document.documentElement.scrollWidth, document.querySelector('.scroll').scrollWidth]`);
  for (const width of await widths()) expect(width).toBeLessThanOrEqual(390);
  await expectAccessible(page);
  await takePicture(page, 'run-phone');
  await page.getByRole('button', { name: 'State, time and evidence' }).click();
  await page.locator('svg.chart').waitFor();
  await takePicture(page, 'run-phone-side');
  await page.getByRole('button', { name: 'State, time and evidence' }).click();
  await page.locator('.row-tool .proof').click();
  await page.locator('.evidence mark').waitFor();
  expect((await page.locator('.evidence').boundingBox())?.width).toBe(390);
  for (const width of await widths()) expect(width).toBeLessThanOrEqual(390);
  await expectAccessible(page);
  await takePicture(page, 'run-phone-evidence');
});

test('a question that appears takes no key until it is chosen: pressing y again approves nothing unseen', async () => {
  const desk = await openDesk();
  const runId = await begin(desk, '[[approve ls]] [[approve rm -rf /important]] [[done 1]]', 'codex-app-server');
  await expect.poll(async () => (await desk.server.client.get(runId)).status, { timeout: 30_000 }).toBe('waiting_user');
  const page = await desk.open(`/runs/${runId}`);
  await page.locator('.card.active', { hasText: 'ls' }).waitFor();
  await page.keyboard.down('y');
  await page.keyboard.down('y');
  await page.locator('.card', { hasText: 'rm -rf' }).waitFor();
  await page.keyboard.down('y');
  await page.keyboard.up('y');
  await page.keyboard.press('y');
  expect(await page.locator('.card', { hasText: 'rm -rf' }).locator('.fate').textContent()).toBe('');
  expect((await desk.server.client.get(runId)).status).toBe('waiting_user');
  await page.keyboard.press('j');
  await page.locator('.card.active', { hasText: 'rm -rf' }).waitFor();
  await page.keyboard.press('n');
  await state(page, 'succeeded');
});

test('a run or the form opened while the server is away loads when it is back, without a page reload', async () => {
  const desk = await openDesk();
  const runId = await begin(desk, '[[done 1]]');
  // A run that the kill interrupted would fail.
  await expect.poll(async () => (await desk.server.client.get(runId)).status).toBe('succeeded');
  const page = await desk.open('/runs', { expects: /Failed to load resource|ERR_|net::/ });
  await page.getByRole('link', { name: '[[done 1]]' }).waitFor();
  const form = await desk.open('/runs', { expects: /Failed to load resource|ERR_|net::/ });
  // The page shows this link only after the server has confirmed that the caller is an operator.
  await form.getByRole('link', { name: 'New run' }).waitFor();
  const { port } = desk.server;
  desk.server.child.kill('SIGKILL');
  await desk.server.ended;
  await page.getByRole('link', { name: '[[done 1]]' }).click();
  await form.getByRole('link', { name: 'New run' }).click();
  await form.getByText('Loading engines…').waitFor();
  // Longer than the automatic retries of a call.
  await page.getByText(/\(for 2\d s\)/).waitFor({ timeout: 40_000 });
  await desk.startAgain(port);
  await state(page, 'succeeded');
  await form.getByRole('radio', { name: /rehearsal/ }).waitFor();
  expect(page.url()).toContain(runId);
}, 90_000);

test('retry, when the answer is lost, starts one run however often it is pressed', async () => {
  const desk = await openDesk();
  const runId = await begin(desk, 'Once [[fail]]');
  const page = await desk.open(`/runs/${runId}`, { expects: /Failed to load resource|ERR_|net::/ });
  await state(page, 'failed');
  await page.route(
    '**/retry',
    async (route) => {
      await route.fetch();
      await route.abort();
    },
    { times: 1 },
  );
  await page.getByRole('button', { name: 'Retry' }).click();
  await page.getByText('it is done only once').waitFor();
  await page.getByRole('button', { name: 'Retry' }).click();
  await page.waitForURL((url) => !url.pathname.endsWith(runId));
  expect((await desk.server.client.list()).runs).toHaveLength(2);
});
