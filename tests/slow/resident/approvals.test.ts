// Approvals of an engine that stays: they become interactions of the run, a decision reaches the process that asked while it lives,
// and one that comes later is applied once, to the same action only.
import { expect, test } from 'vitest';
import { processesOf } from '../../support/orchestrated.js';
import { ADA, dataOf, openResidentBench, type ResidentBench } from '../../support/resident-bench.js';

const COMMAND = 'echo done >> made.txt';

async function withBench(work: (bench: ResidentBench) => Promise<void>, changes: Parameters<typeof openResidentBench>[0] = {}): Promise<void> {
  const bench = await openResidentBench(changes);
  try {
    await work(bench);
  } finally {
    await bench.close();
  }
}

test.each([
  { decision: 'approve', runs: 1 },
  { decision: 'approve_for_session', runs: 2 },
  { decision: 'decline', runs: 0 },
])('while the process lives, $decision goes to it', async ({ decision, runs }) => withBench(async (bench) => {
  const asked = await bench.play(`[[say Hello.]] [[approve ${COMMAND}]] [[approve ${COMMAND}]] [[say I go on.]] [[done 7]]`);
  expect(asked.status).toBe('waiting_user');
  const { question } = await bench.pending(asked);
  expect(question).toMatchObject({ kind: 'approval', channel: 'native', action: { kind: 'command', cwd: asked.spec.cwd }, digest: expect.stringMatching(/^[0-9a-f]{64}$/) });
  expect(String(question.prompt)).toContain(COMMAND);
  const pids = processesOf(asked.run_id);
  expect(pids.length).toBeGreaterThan(0);
  const next = await bench.reply(asked, { decision });
  if (decision === 'approve_for_session') expect(next).toMatchObject({ status: 'succeeded', result: 7 });
  else {
    expect(next.status).toBe('waiting_user');
    expect(processesOf(asked.run_id)).toEqual(pids);
    expect(await bench.reply(asked, { decision: 'decline' })).toMatchObject({ status: 'succeeded', result: 7 });
  }
  expect(bench.commands()).toHaveLength(runs);
  expect(await bench.pids(asked)).toHaveLength(1);
  expect(dataOf(await bench.events(asked), 'interaction.approval.applied')[0]).toMatchObject({ decision, digest: question.digest, actor: ADA });
}));
