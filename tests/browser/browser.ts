// A real browser on the built console, served by the built server. Closes everything after each test; an error in the
// page fails the test.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import chromium from '@sparticuz/chromium';
import { chromium as playwright, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { afterAll, afterEach, expect } from 'vitest';
import { createSite, type Site } from '../support/command.js';
import { startServer, type ServerProcess } from '../support/served-process.js';
import { steadyPort } from '../support/steady-port.js';

// The folder for screenshots.
const PICTURES = process.env['PARLEY_PICTURES'];

let launched: Promise<Browser> | null = null;

// One for all tests of a file: it takes a while to unpack and start.
async function browser(): Promise<Browser> {
  launched ??= (async () =>
    playwright.launch({
      executablePath: await chromium.executablePath(),
      args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
      headless: true,
    }))();
  return launched;
}

const endings: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end();
});
afterAll(async () => {
  await (await launched)?.close();
});

interface Look {
  readonly width?: number;
  readonly height?: number;
  readonly dark?: boolean;
  readonly touch?: boolean;
  // Another person than the operator.
  readonly token?: string;
  // False: a browser without a session.
  readonly isSignedIn?: boolean;
  // Expected errors of the page, for instance while its server is down.
  readonly expects?: RegExp;
}

export interface Desk {
  readonly site: Site;
  server: ServerProcess;
  open(path?: string, look?: Look): Promise<Page>;
  // Kills the server and restarts it on the same port.
  restart(): Promise<void>;
  // Restarts it after it was killed.
  startAgain(port: number): Promise<void>;
}

// The site may be prepared before the server starts, or belong to the test.
export async function openDesk(prepare: (site: Site) => Site | void | Promise<Site | void> = () => {}): Promise<Desk> {
  const made = createSite();
  const site = (await prepare(made)) ?? made;
  const desk: Desk = {
    site,
    server: await startServer(site, ['--port', String(await steadyPort())]),
    async open(path = '/', look = {}) {
      const context = await (
        await browser()
      ).newContext({
        viewport: { width: look.width ?? 1200, height: look.height ?? 800 },
        colorScheme: look.dark ? 'dark' : 'light',
        hasTouch: look.touch ?? false,
        baseURL: desk.server.url,
      });
      endings.push(() => context.close());
      const page = await context.newPage();
      watchComplaints(page, look.expects);
      if (look.isSignedIn !== false) await signIn(context, desk.server.url, look.token ?? desk.server.token);
      await page.goto(path);
      return page;
    },
    async restart() {
      const { port } = desk.server;
      desk.server.child.kill('SIGKILL');
      await desk.server.ended;
      await desk.startAgain(port);
    },
    async startAgain(port) {
      desk.server = await startServer(site, ['--port', String(port)]);
    },
  };
  endings.push(async () => {
    desk.server.child.kill('SIGTERM');
    await desk.server.ended;
  });
  return desk;
}

function watchComplaints(page: Page, expected: RegExp | undefined): void {
  const complaints: string[] = [];
  const note = (text: string): void => {
    if (!expected?.test(text)) complaints.push(text);
  };
  page.on('pageerror', (error) => note(String(error)));
  page.on('console', (message) => message.type() === 'error' && note(message.text()));
  // Nothing is ever loaded from another origin.
  page.on('request', (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (protocol !== 'data:' && protocol !== 'blob:' && hostname !== '127.0.0.1')
      complaints.push(`asked for ${request.url()}`);
  });
  endings.push(async () => expect(complaints).toEqual([]));
}

export async function takePicture(page: Page, name: string): Promise<void> {
  if (PICTURES === undefined) return;
  mkdirSync(PICTURES, { recursive: true });
  await page.screenshot({ path: join(PICTURES, `${name}.png`) });
}

// No serious finding of axe. Its script is injected from outside, because the page's policy allows none.
export async function expectAccessible(page: Page): Promise<void> {
  const { default: axe } = await import('axe-core');
  const findings = await page.evaluate(async (source: string) => {
    // eslint-disable-next-line no-new-func
    const run = new Function(`${source}; return axe.run(document, { resultTypes: ['violations'] });`);
    const { violations } = (await run()) as {
      violations: { id: string; impact: string | null; nodes: { html: string }[] }[];
    };
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(
        ({ id, nodes }) =>
          `${id}: ${nodes
            .map(({ html }) => html)
            .slice(0, 3)
            .join(' | ')}`,
      );
  }, axe.source);
  expect(findings).toEqual([]);
}

export type { BrowserContext, Page };

// As the page does it, with a token; the cookie applies to all pages of the context.
export async function signIn(context: BrowserContext, url: string, token: string): Promise<void> {
  const answer = await context.request.post(`${url}/v1/sign-in`, { headers: { origin: url }, data: { token } });
  expect(answer.status()).toBe(200);
}
