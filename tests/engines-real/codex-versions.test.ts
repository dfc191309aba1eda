// Threads of the app-server on several versions of Codex, which support different methods.
import { expect, test } from 'vitest';
import { ENGINE_PACKAGES } from '../../scripts/install-engines.mjs';
import { CODEX_VERSIONS, codexOf } from '../../scripts/install-codex-versions.mjs';
import { asObject, asString, type Json } from '../../src/kernel/json.js';
import { newThread, openDesk, play } from './real-app-server.js';

const PROVED = ENGINE_PACKAGES.codex.version;

// The person's texts among everything that the model received.
function prompts(body: Json | undefined): string[] {
  const input = asObject(body)?.input;
  const texts = (Array.isArray(input) ? input : []).flatMap((item) => {
    const { role, content } = asObject(item) ?? {};
    return role === 'user' && Array.isArray(content)
      ? content.flatMap((part) => asString(asObject(part)?.text) ?? [])
      : [];
  });
  return texts.filter((text) => text.startsWith('prompt '));
}

test.each([...CODEX_VERSIONS, PROVED])(
  'Codex %s takes back the last turns of a thread, loaded or not',
  async (version) => {
    const desk = await openDesk();
    const rest = version === PROVED ? {} : { codexBin: codexOf(version) };
    const server = await desk.open('one', rest);
    const thread = await newThread(server);
    for (const prompt of ['prompt one', 'prompt two', 'prompt three']) await play(server, thread, prompt);
    expect((await server.threads.rollback(thread, 1)).id).toBe(thread);
    await play(server, thread, 'prompt four');
    expect(prompts(desk.person.model.requests.at(-1)?.body)).toEqual(['prompt one', 'prompt two', 'prompt four']);
    await server.close();
    const again = await desk.open('one', rest);
    await again.threads.rollback(thread, 2);
    await play(again, thread, 'prompt five');
    expect(prompts(desk.person.model.requests.at(-1)?.body)).toEqual(['prompt one', 'prompt five']);
    await expect(again.threads.rollback(thread, 9)).rejects.toThrow();
  },
);
