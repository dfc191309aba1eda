// The scripted models as services: each directive over real connections, in each protocol.
import { afterEach, describe, expect, test } from 'vitest';
import type { Json, JsonObject } from '../../src/kernel/json.js';
import { buildFirstPrompt } from '../../src/run/turn-prompt.js';
import { CLIENTS, type Client, type Heard } from './test-clients.js';
import type { ModelServer } from './model-server.js';

const open: ModelServer[] = [];

afterEach(async () => {
  for (const model of open.splice(0)) await model.close();
});

describe.each(CLIENTS)('the model of $name', (client: Client) => {
  async function start(): Promise<ModelServer> {
    const model = await client.start();
    open.push(model);
    return model;
  }

  async function hear(...conversation: readonly Json[]): Promise<Heard> {
    return client.request(await start(), conversation);
  }

  test('answers, in the order of the directives', async () => {
    expect((await hear(client.user('x [[answer one]] [[done {"n":1}]]'))).text).toBe(
      'one\n{"done":true,"result":{"n":1}}',
    );
  });

  test('calls the shell, writes a file, and is done', async () => {
    const prompt = client.user('[[tool echo hi]] [[file f.txt]] [[answer end]]');
    const first = await hear(prompt);
    expect(first.calls).toEqual([client.calls.shell('echo hi')]);
    const second = await hear(prompt, ...client.exchange(first));
    expect(second.calls).toEqual([client.calls.write('f.txt')]);
    expect((await hear(prompt, ...client.exchange(first), ...client.exchange(second))).text).toBe('end');
  });

  test('makes two calls in one response, and a file anywhere', async () => {
    const heard = await hear(client.user('[[tool echo hi]] [[beside]] [[patch /var/f.txt]]'));
    expect(heard.calls).toHaveLength(2);
    expect(heard.calls[0]).toEqual(client.calls.shell('echo hi'));
    expect(JSON.stringify(heard.calls[1])).toContain('/var/f.txt');
  });

  test('asks with the offered tool, ends its turn, and continues after the answer in another process', async () => {
    const prompt = client.user('[[ask Which?|red|blue]] [[done "ok"]]');
    const first = await hear(prompt);
    expect(first.calls).toEqual([client.calls.ask({ prompt: 'Which?', options: ['red', 'blue'] })]);
    const second = await hear(prompt, ...client.exchange(first));
    expect(second).toMatchObject({ calls: [], text: 'The question is asked; I end my turn.' });
    expect(
      (await hear(prompt, ...client.exchange(first), client.assistant(second.text), client.user('blue'))).text,
    ).toBe('{"done":true,"result":"ok"}');
  });

  test('says so when the tool is not offered, and asks by the envelope if the prompt explains it', async () => {
    const model = await start();
    expect(await client.request(model, [client.user('[[ask Which?|red]]')], [])).toMatchObject({
      calls: [],
      text: 'The tool ask_human is not offered.',
    });
    const reply = await client.request(model, [client.user(buildFirstPrompt('interactive', '[[ask Which?|red]]'))], []);
    expect(reply.text).toBe('The tool ask_human is not offered.\n{"ask_user":{"prompt":"Which?","options":["red"]}}');
  });

  test.each([400, 401, 429, 500])('[[http %i]] is that status, with the error of the service', async (status) => {
    const heard = await hear(client.user(`[[answer a]] [[http ${status}]]`));
    expect(heard).toMatchObject({ status, text: '' });
    expect(heard.body).toContain(`Scripted failure ${status}.`);
  });

  test('[[http 500 7]] asks to be tried again after 7 ms', async () => {
    expect((await hear(client.user('[[http 500 7]]'))).headers.get('retry-after-ms')).toBe('7');
  });

  test('[[cut]] drops the connection in the middle of the answer', async () => {
    expect(await hear(client.user('[[answer a]] [[cut]]'))).toMatchObject({
      status: 200,
      whole: false,
      text: expect.stringContaining('This answer is cut o'),
    });
  });

  test('[[crash]] drops the connection before any answer', async () => {
    await expect(hear(client.user('[[crash]]'))).rejects.toThrow('fetch failed');
  });

  test('[[html]], [[badsse]], [[empty]] and [[fail]] are no answers', async () => {
    expect((await hear(client.user('[[html]]'))).body).toMatch(/^<!doctype html>/);
    expect((await hear(client.user('[[badsse]]'))).body).toContain('data: {"this is no":\n\n');
    expect(await hear(client.user('[[answer a]] [[empty]]'))).toMatchObject({
      status: 200,
      whole: true,
      text: '',
      calls: [],
      ended: true,
    });
    expect((await hear(client.user('[[answer a]] [[fail]]'))).body).toContain(client.declined);
  });

  test('[[hang]] never answers', async () => {
    const model = await start();
    const gone = new AbortController();
    const request = client.request(model, [client.user('[[hang]]')], undefined, gone.signal);
    await model.received(1);
    gone.abort();
    await expect(request).rejects.toThrow('aborted');
  });

  test('[[slow 1]] sends small pieces, [[events 3 10]] and [[huge 200000]] as much as they say', async () => {
    const slow = await hear(client.user('[[slow 1]] [[answer twenty characters ..]]'));
    expect(slow).toMatchObject({ text: 'twenty characters ..', pieces: 3 });
    expect((await hear(client.user('[[events 3 10]] [[sleep 1]]'))).text).toBe(
      ['x'.repeat(10), 'x'.repeat(10), 'x'.repeat(10)].join('\n'),
    );
    expect((await hear(client.user('[[huge 200000]]'))).text).toHaveLength(200_000);
  });

  test('[[utf8]] comes whole', async () => {
    expect((await hear(client.user('[[utf8]]'))).text).toBe('Grüße 漢字 e\u0301 a\u2028b 👩‍👩‍👧 🚀');
  });

  test('records each request, without the value of a key', async () => {
    const model = await start();
    await client.request(model, [client.user('hello')]);
    expect(model.requests).toHaveLength(1);
    expect(model.requests[0]?.method).toBe('POST');
    expect(JSON.stringify(model.requests[0]?.body)).toContain('hello');
    expect(Object.values(model.requests[0]?.headers ?? {})).toContain('(hidden)');
    expect(JSON.stringify(model.requests)).not.toContain('a-secret');
  });

  test('text that a CLI adds on its own is not a prompt', async () => {
    expect((await hear(...client.context, client.user('hello'))).text).toBe('You said: hello\nEarlier turns: 0.');
  });

  test('other paths are not there', async () => {
    const model = await start();
    const response = await fetch(`${model.url}/elsewhere`, { method: 'POST', body: '{}' });
    expect(response.status).toBe(404);
    expect((await response.json()) as JsonObject).toHaveProperty('error');
  });
});
