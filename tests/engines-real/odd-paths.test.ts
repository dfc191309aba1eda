// A data directory may have any name: no engine reads a part of it as a variable, a file to include, or two words.
import { describe, expect, test } from 'vitest';
import { openRealBench, REAL_ENGINES } from './real-bench.js';

const ODD = `$HOME \${PATH:-x} {env:HOME} {file:~} "it's" 漢字 %s #-`;

describe.each(REAL_ENGINES)('%s', (engine) => {
  test.each(['read-only', 'full'] as const)(
    'asks and continues in a folder with an odd name, with the permission %s',
    async (permission) => {
      const bench = await openRealBench(engine, { oddly: ODD });
      const run = await bench.play('[[ask Which?|a|b]][[done 1]]', { execution_mode: 'interactive', permission });
      expect(run.status).toBe('waiting_user');
      expect((await bench.data.store.loadPendingInteraction(run.run_id))?.question).toMatchObject({
        prompt: 'Which?',
        channel: 'tool',
      });
      const events = (await bench.events(run.run_id)).filter(({ data }) =>
        ['ASK_TOOL_NOT_LISTED', 'ASK_WITNESS_MISSING'].includes(String(data['code'])),
      );
      expect(events).toEqual([]);
      expect((await bench.reply(run.run_id, 'a')).status).toBe('succeeded');
    },
  );
});
