// parley webhook test: sends a signed delivery of type "test" to a webhook of the settings, and reports the result.
import { randomUUID } from 'node:crypto';
import { loadHooks } from '../../hooks/load-hooks.js';
import { post } from '../../hooks/post.js';
import { readSettings } from '../../settings/read-settings.js';
import { toTimestamp } from '../../kernel/clock.js';
import { refusal } from '../../run/request-error.js';
import { FIRST_DIGEST } from '../../store/digest.js';
import { dataDirOf, type DataOption } from '../data-dir.js';
import { EXIT, type Io } from '../io.js';
import { sayMessage, texts } from '../language/language.js';

export async function testWebhookCommand(
  name: string,
  { json, ...options }: DataOption & { readonly json?: boolean },
  io: Io,
): Promise<number> {
  const path = dataDirOf(options, io);
  const { webhooks, public_url: publicUrl } = readSettings(path);
  const setting = webhooks.find((each) => each.name === name);
  if (!setting) {
    const names = webhooks.map((each) => each.name).join(', ') || texts().webhook.none;
    const file = `${path}/config.json`;
    throw refusal('INVALID_ARGUMENT.webhook_unknown', { name, file, names });
  }
  const [hook] = loadHooks([setting], io.env);
  if (!hook) return EXIT.failed;
  const id = `dlv_test_${randomUUID()}`;
  const at = toTimestamp(io.clock.now());
  const payload = { type: 'test', at, message: 'A test delivery from parley webhook test.', url: publicUrl };
  const delivery = { delivery_id: id, payload, rasp_seq: 0, digest: FIRST_DIGEST };
  const stop = new AbortController().signal;
  const problem = await post({ fetch, timers: io.timers, clock: io.clock, stop }, hook, delivery);
  const { delivered, notDelivered } = texts().webhook;
  if (json)
    io.stdout.write(
      `${JSON.stringify({ type: 'webhook_tested', name, ok: problem === null, error: problem?.text ?? null })}\n`,
    );
  else io.stdout.write(`${problem === null ? delivered(name) : notDelivered(name, sayMessage(problem))}\n`);
  return problem === null ? EXIT.ok : EXIT.failed;
}
