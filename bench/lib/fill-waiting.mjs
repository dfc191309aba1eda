// Fills a data directory with waiting runs, and kills itself.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { draft } from '../../dist/rasp/draft.js';
import { applyRunEvent } from '../../dist/journal/apply-run-event.js';
import { createRun } from '../../dist/commands/create-run.js';
import { createIds } from '../../dist/kernel/ids.js';
import { systemClock } from '../../dist/kernel/clock.js';
import { openDataDir } from '../../dist/store/sqlite/data-dir.js';

const [dir, count] = process.argv.slice(2);
const FACTS = { pending: true, handle: true, requireUserReply: true, sticky: false };

mkdirSync(dir, { recursive: true });
const data = await openDataDir(join(dir, 'data'), { pid: process.pid });
const ids = createIds(systemClock);
const deps = { store: data.store, clock: systemClock, ids, dataDir: data.path, queueLimit: Infinity };
for (let number = 0; number < Number(count); number += 1) {
  const run = await createRun(deps, { engine: 'codex', prompt: 'go', execution_mode: 'interactive', cwd: dir }, {});
  const { run: running } = await applyRunEvent(deps, run, { event: 'turn.started', facts: FACTS, set: { epoch: 1 } });
  const id = ids.interaction();
  const asked_at = systemClock.now();
  const question = {
    interaction_id: id,
    kind: 'open_text',
    prompt: 'Which?',
    options: [],
    asked_at: new Date(asked_at).toISOString(),
  };
  await applyRunEvent(deps, running, {
    event: 'turn.needs_input',
    facts: FACTS,
    handle: {
      engine: 'codex',
      handle_type: 'session_id',
      handle_value: '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c',
      cwd: dir,
      home: dir,
      created_at_attempt: 1,
    },
    ask: { interaction_id: id, attempt_number: 1, question, asked_at, due_at: asked_at + 1e6, decides: false },
    before: [draft('interaction.requested', question)],
  });
}
process.kill(process.pid, 'SIGKILL');
