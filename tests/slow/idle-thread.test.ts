// An idle thread for schemas does not keep its process alive, however long it would wait for work. Needs the build.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const LANE = new URL('../../dist/schema-check/check-lane.js', import.meta.url).href;
const HOUR_MS = 3_600_000;

test('a process ends while its thread for schemas waits for work', async () => {
  const script = `
    import { CheckLane } from ${JSON.stringify(LANE)};
    const lane = new CheckLane({ deadlineMs: ${HOUR_MS}, idleMs: ${HOUR_MS}, cache: 1, memoryMb: 64 });
    const answer = await lane.run({ digest: 'd', schema: '{"type":"number"}', value: '1' });
    console.log(JSON.stringify(answer));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
    timeout: 60_000,
  });
  // Without findings.
  expect(JSON.parse(stdout)).toEqual({ id: 0 });
});
