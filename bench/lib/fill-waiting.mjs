// Fills a data directory with waiting runs, and kills itself.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { draft } from '../../dist/rasp/draft.js';
import { applyRunEvent } from '../../dist/journal/apply-run-event.js';
import { createRun } from '../../dist/commands/create-run.js';
import { createIds } from '../../dist/kernel/ids.js';
import { systemClock } from '../../dist/kernel/clock.js';
import { singleHost } from '../../dist/ownership/single-host.js';
import { openDataDir } from '../../dist/store/sqlite/data-dir.js';

const [dir, count] = process.argv.slice(2);
const SESSION = '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c';
const FACTS = { pending: true, handle: true, requireUserReply: true, sticky: false };

const folder = join(dir, 'work');
mkdirSync(folder, { recursive: true });
const data = await openDataDir(join(dir, 'data'), { pid: process.pid });
const ids = createIds(systemClock);
const deps = {
  store: data.store,
  clock: systemClock,
  ids,
  dataDir: data.path,
  queueLimit: () => Infinity,
  runtime: {},
  ...singleHost(data.store),
};
for (let number = 0; number < Number(count); number += 1) {
  const run = await createRun(deps, { engine: 'codex', prompt: 'go', execution_mode: 'interactive', cwd: folder }, {});
  const { run: running } = await applyRunEvent(deps, run, { event: 'turn.started', facts: FACTS, epoch: 1 });
  writeSession(run.spec.home);
  const id = ids.interaction();
  const question = {
    interaction_id: id,
    kind: 'open_text',
    prompt: 'Which?',
    options: [],
    asked_at: new Date(systemClock.now()).toISOString(),
  };
  await applyRunEvent(deps, running, {
    event: 'turn.needs_input',
    facts: FACTS,
    before: [
      draft('lifecycle.session.confirmed', {
        session: {
          session_id: SESSION,
          handle_type: 'session_id',
          created_at_attempt: 1,
        },
      }),
      draft('interaction.requested', question),
    ],
  });
}
process.kill(process.pid, 'SIGKILL');

// The conversation in the form of Codex, so that recovery finds it.
function writeSession(home) {
  const folder = join(home, '.codex', 'sessions', '2026', '01', '01');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `rollout-2026-01-01T00-00-00-${SESSION}.jsonl`), '{}\n');
}
