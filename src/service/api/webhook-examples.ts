// One example payload for every type of webhook.
import { ASKED, DIGEST, INTERACTION, LABELS, QUESTION, RUN, RUNNING } from './sample-values.js';

export const DELIVERIES: Readonly<Record<string, object>> = (() => {
  const { run_id, request_id, engine } = RUNNING;
  const base = { run_id, request_id, engine, labels: LABELS, attempt_number: 1 };
  const sent = { url: `http://127.0.0.1:7717/runs/${RUN}`, seq: 42, digest: DIGEST };
  const changed = (status: string, more: object): object => ({
    id: 'dlv_01KA6T0G5P1S7X2Y4B9E6W8Q3F',
    type: `run.${status}`,
    status,
    ...base,
    at: ASKED,
    interaction: null,
    error: null,
    ...sent,
    ...more,
  });
  const { kind, prompt, options } = QUESTION;
  return {
    'run.waiting_user': changed('waiting_user', {
      interaction: { interaction_id: INTERACTION, kind, prompt, options },
    }),
    'run.succeeded': changed('succeeded', {}),
    'run.failed': changed('failed', {
      error: { code: 'ENGINE_EXITED', message: 'The engine exited with code 1.' },
    }),
    'run.canceled': changed('canceled', {}),
    'run.silent': changed('running', { type: 'run.silent', silent_since: '2026-01-31T11:30:42.000Z' }),
    test: {
      id: 'dlv_01KA6T0H6Q2T8Y3Z5C1F7X9R4G',
      type: 'test',
      at: ASKED,
      message: 'A test delivery from parley webhook test.',
      url: 'http://127.0.0.1:7717',
      seq: 0,
      digest: '',
    },
  };
})();
