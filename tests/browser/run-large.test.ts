// A run of twenty thousand events in a real browser: all of it is loaded, can be scrolled and grows, and the page
// never draws more rows than fit on the screen. Prints the times, which depend on the machine.
import { expect, test } from 'vitest';
import { openDesk, takePicture } from './browser.js';

const EVENTS = 20_000;
const ALL_MS = 30_000;
const MOST_ROWS = 80;

interface Frames {
  readonly median: number;
  readonly p95: number;
  readonly worst: number;
  readonly rows: number;
}

const round = ({ median, p95, worst }: Omit<Frames, 'rows'>): string =>
  `median ${median.toFixed(1)} ms, p95 ${p95.toFixed(1)} ms, worst ${worst.toFixed(1)} ms`;

test('twenty thousand events load fast, scroll smoothly, and only visible rows are drawn', async () => {
  const desk = await openDesk();
  const { client } = desk.server;
  const { run_id: runId } = await client.create({
    engine: 'rehearsal',
    prompt: `Count. [[events ${EVENTS} 120]] [[done 1]]`,
  });
  for await (const { type } of client.events(runId)) if (type === 'conversation.completed') break;
  const page = await desk.open('/engines');
  const startedAt = Date.now();
  await page.goto(`/runs/${runId}`);
  await page.locator('.row-message').first().waitFor();
  const firstMs = Date.now() - startedAt;
  await page.locator('.scroll[aria-busy="false"]').waitFor({ timeout: ALL_MS });
  const allMs = Date.now() - startedAt;
  const setSize = Number(await page.locator('.row').first().getAttribute('aria-setsize'));
  expect(setSize).toBeGreaterThanOrEqual(EVENTS);
  await page.getByRole('button', { name: /^(?:Jump to the end|\d+ new) ↓$/ }).waitFor();
  // By wheel steps, by pages, and in large jumps; each in its own frames.
  const scroll = (step: number, count: number) =>
    page.evaluate<Frames>(`new Promise((resolve) => {
    const box = document.querySelector('.scroll');
    const frames = [];
    let last = 0;
    let rows = 0;
    const next = (now) => {
      if (last > 0) frames.push(now - last);
      rows = Math.max(rows, document.querySelectorAll('.row').length);
      last = now;
      box.scrollTop += ${step};
      if (frames.length < ${count}) return requestAnimationFrame(next);
      const sorted = frames.toSorted((a, b) => a - b);
      const at = (part) => sorted[Math.floor(sorted.length * part)];
      resolve({ median: at(0.5), p95: at(0.95), worst: sorted.at(-1), rows });
    };
    requestAnimationFrame(next);
  })`);
  const figures = { wheel: await scroll(100, 120), page: await scroll(600, 120), leap: await scroll(9000, 60) };
  const drawn = await page.locator('.row').count();
  await page.locator('.to-end').click();
  await page.getByRole('heading', { name: 'Succeeded' }).waitFor();
  const heap = await page.evaluate<number>('performance.memory.usedJSHeapSize');
  console.log(
    `${setSize} rows: first paint ${firstMs} ms, all told ${allMs} ms, rows drawn ${drawn}, heap ` +
      `${(heap / 1e6).toFixed(0)} MB; frames: wheel ${round(figures.wheel)}; page ${round(figures.page)}; leap ` +
      `${round(figures.leap)}`,
  );
  await takePicture(page, 'run-large');
  for (const rows of [drawn, ...Object.values(figures).map((frames) => frames.rows)])
    expect(rows).toBeLessThan(MOST_ROWS);
}, 180_000);

test('twenty thousand events that come while one looks hold nothing up, and the end stays in sight', async () => {
  const desk = await openDesk();
  const { run_id: runId } = await desk.server.client.create({
    engine: 'rehearsal',
    prompt: `Count. [[ask Begin? | Yes]] [[events ${EVENTS} 120]] [[done 1]]`,
    execution_mode: 'interactive',
  });
  const page = await desk.open(`/runs/${runId}`);
  await page.getByRole('button', { name: 'Yes' }).waitFor();
  await page.evaluate(`(() => {
    window.frames_ = [];
    let last = performance.now();
    const next = (now) => {
      window.frames_.push(now - last);
      last = now;
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  })()`);
  const startedAt = Date.now();
  await page.getByRole('button', { name: 'Yes' }).click();
  await page.getByRole('heading', { name: 'Succeeded' }).waitFor();
  const frames = await page.evaluate<number[]>('window.frames_.toSorted((a, b) => a - b)');
  const figures = {
    median: frames[Math.floor(frames.length / 2)] ?? 0,
    p95: frames[Math.floor(frames.length * 0.95)] ?? 0,
    worst: frames.at(-1) ?? 0,
  };
  console.log(`live: ${EVENTS} events in ${Date.now() - startedAt} ms; ${frames.length} frames: ${round(figures)}`);
  expect(await page.locator('.to-end').count()).toBe(0);
  expect(await page.locator('.row').count()).toBeLessThan(MOST_ROWS);
  // The page was drawn repeatedly while the events came.
  expect(frames.length).toBeGreaterThan(20);
}, 120_000);

test('new events do not scroll a reader who is further up; a notice announces them', async () => {
  const desk = await openDesk();
  const { client } = desk.server;
  const { run_id: runId } = await client.create({
    engine: 'rehearsal',
    prompt: 'Count. [[events 300 400]] [[ask Go on? | Yes]] [[events 50 40]] [[ask And now? | Yes]] [[done 1]]',
    execution_mode: 'interactive',
  });
  const page = await desk.open(`/runs/${runId}`);
  await page.getByRole('button', { name: 'Yes' }).waitFor();
  // It has followed to the end.
  await page.locator('.to-end').waitFor({ state: 'detached' });
  await page.locator('.scroll').hover();
  await page.mouse.wheel(0, -4000);
  await page.getByRole('button', { name: 'Jump to the end ↓' }).waitFor();
  const top = () =>
    page.evaluate<number>(
      `document.querySelector('.scroll').getBoundingClientRect().top - ` +
        `[...document.querySelectorAll('.row')].find((row) => row.getBoundingClientRect().top > ` +
        '200).getBoundingClientRect().top',
    );
  const before = await top();
  const { interaction } = await client.get(runId);
  await client.reply(runId, { interaction_id: interaction?.interaction_id ?? '', response: 'Yes' });
  await page.getByRole('button', { name: /^\d+ new ↓$/ }).waitFor();
  await page.locator('.facts .state', { hasText: 'waiting for you' }).waitFor();
  expect(Math.abs((await top()) - before)).toBeLessThan(2);
  await page.locator('.to-end').click();
  await page.getByText('And now?', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Yes' }).click();
  await page.locator('.facts .state', { hasText: 'succeeded' }).waitFor();
});
