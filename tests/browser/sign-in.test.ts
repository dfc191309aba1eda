// Signing in by a link in a real browser, signing out, and what keeps the console's HTML safe.
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { parley } from '../support/command.js';
import { openDesk } from './browser.js';

test('a link signs a browser in once, and its code stays in no address, history or request line', async () => {
  const desk = await openDesk();
  const { url } = await desk.server.client.createSignInCode();
  const page = await desk.open('about:blank', { isSignedIn: false });
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  await page.goto(url);
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
  expect(new URL(page.url()).hash).toBe('');
  const code = url.split('code=')[1] ?? '';
  expect(asked.filter((each) => each.replace(/#.*/, '').includes(code))).toEqual([]);
  expect(await page.evaluate('history.length')).toBeLessThanOrEqual(2);
  await page.goBack().catch(() => null);
  expect(page.url()).not.toContain('code=');
  // Another browser is too late, and receives an explanation.
  const second = await desk.open(url, { isSignedIn: false, expects: /401/ });
  await second.getByText('This code is unknown, was used already, or has expired').waitFor();
  expect(second.url()).not.toContain('code=');
});

test('a link that is opened in the tab that asks for it signs in', async () => {
  const desk = await openDesk();
  const page = await desk.open('/', { isSignedIn: false, expects: /401/ });
  await page.getByText('This browser is not signed in').waitFor();
  const { url } = await desk.server.client.createSignInCode();
  // Only the fragment changes, so the page is not loaded again.
  await page.goto(url);
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
  expect(page.url()).not.toContain('code=');
});

test('signing out ends the session on the server, and the page asks to sign in', async () => {
  const desk = await openDesk();
  const page = await desk.open('/', { expects: /401/ });
  const [cookie] = await page.context().cookies();
  const headers = { cookie: `${cookie?.name}=${cookie?.value}` };
  expect((await fetch(`${desk.server.url}/v1/me`, { headers })).status).toBe(200);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('This browser is not signed in').waitFor();
  expect((await fetch(`${desk.server.url}/v1/me`, { headers })).status).toBe(401);
  // With a typed token: a wrong one is explained, the right one signs in.
  await page.getByLabel('Or sign in with a token').fill('prl_wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').getByText('This token is unknown, expired or revoked').waitFor();
  const { stdout } = await parley(desk.site, ['token', 'add', 'anna', '--role', 'viewer']);
  await page.getByLabel('Or sign in with a token').fill(stdout.trim());
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('anna', { exact: true }).waitFor();
});

test('the browser refuses HTML that bypasses the sanitizer, and a second policy', async () => {
  const desk = await openDesk();
  const page = await desk.open('/', { expects: /TrustedHTML|Trusted ?Type|Content Security Policy/i });
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
  const attempt = (code: string) =>
    page.evaluate(`(() => { try { ${code}; return 'done'; } catch (error) { return error.name; } })()`);
  expect(await attempt(`document.body.appendChild(document.createElement('div')).innerHTML = '<b>x</b>'`)).toBe(
    'TypeError',
  );
  for (const name of ['parley-markdown', 'default', 'dompurify', 'evil'])
    expect(await attempt(`trustedTypes.createPolicy('${name}', { createHTML: (html) => html })`), name).toBe(
      'TypeError',
    );
  const answer = await fetch(desk.server.url);
  expect(answer.headers.get('content-security-policy')).toContain(
    `require-trusted-types-for 'script'; trusted-types parley-markdown`,
  );
  expect(answer.headers.get('cross-origin-opener-policy')).toBe('same-origin');
});

test('Markdown links that would reach the server itself are text; those to elsewhere are links', async () => {
  const desk = await openDesk();
  const { host } = new URL(desk.server.url);
  const inside = [
    '/v1/runs',
    'http:/v1/runs',
    'http:v1',
    'http:\\\\x',
    '//evil.example/x',
    `//${host}/x`,
    `http://${host}/v1/sign-out`,
    `HTTP://${host.toUpperCase()}/x`,
    `http://user@${host}/x`,
    '#code=x',
    '?x',
    'javascript:1',
    'data:text/html,x',
    'http:///x',
    'https:/x',
  ];
  const outside = ['https://example.com/a', 'http://example.com:8080/', 'mailto:anna@example.com'];
  const id = createHash('sha256').update(host).digest('hex').slice(0, 8);
  const text = [...inside, ...outside].map((href, index) => `[L${index}](<${href}>)`).join(' ');
  await desk.server.client.create({
    engine: 'codex',
    prompt: `${id} [[ask ${text} **bold**]]`,
    execution_mode: 'interactive',
    permission: 'full',
  });
  const page = await desk.open('/');
  await page.locator('.question strong', { hasText: 'bold' }).waitFor();
  const links = page.locator('.question a[href]');
  expect(await links.evaluateAll((all) => all.map((link) => link.getAttribute('href')))).toEqual(outside);
  expect(await links.first().getAttribute('rel')).toBe('noopener noreferrer nofollow');
});
