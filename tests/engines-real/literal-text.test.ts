// Prompts and replies that look like commands of a CLI reach the model as text, and nothing is executed or added for
// them.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openRealBench, REAL_ENGINES, type RealBench } from './real-bench.js';

const REPLIES = [
  '/quit',
  '/init',
  '/deploy now',
  '/compact',
  '/review',
  '@note.txt',
  'mail me@note.txt',
  '@helper',
  '!ls',
  '#note.txt',
  '--help',
  ' two  spaces\n\ttab',
];
// The content that a command, a file, an agent or a skill of that name would add.
const BROUGHT = /NOTE-CONTENT|COMMAND-CONTENT|HELPER-CONTENT/;

function plant({ root, cwd }: RealBench): void {
  const home = join(root, 'user');
  const files: Record<string, string> = {
    [join(cwd, 'note.txt')]: 'NOTE-CONTENT',
    [join(cwd, 'deep', 'helper.md')]: 'HELPER-CONTENT',
    [join(home, '.gemini', 'commands', 'deploy.toml')]: 'prompt = "COMMAND-CONTENT"',
    [join(cwd, '.gemini', 'commands', 'deploy.toml')]: 'prompt = "COMMAND-CONTENT"',
    [join(home, '.codex', 'prompts', 'deploy.md')]: 'COMMAND-CONTENT',
    [join(home, '.claude', 'commands', 'deploy.md')]: '---\ndescription: deploys\n---\nCOMMAND-CONTENT',
    [join(home, '.config', 'opencode', 'command', 'deploy.md')]: 'COMMAND-CONTENT',
    [join(home, '.config', 'opencode', 'agent', 'helper.md')]:
      '---\ndescription: helps\nmode: subagent\n---\nHELPER-CONTENT',
  };
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, content);
  }
}

// The last text of the person, in any of the formats of the services.
function lastWords(bench: RealBench, marker: string): string[] {
  const texts: string[] = [];
  const walk = (value: unknown): void => {
    if (typeof value === 'string' && value.includes(marker)) texts.push(value);
    else if (typeof value === 'object' && value !== null) Object.values(value).forEach(walk);
  };
  for (const { body } of bench.model.requests) walk(body);
  return texts;
}

// Two need a space before a slash and a backslash before the name of a file; Claude Code reads names only at the start
// of a word.
const ESCAPED: Partial<Record<string, (sent: string) => string>> = {
  claude: (sent) => sent.replace(/^\//, ' /').replace(/^@(?=note)/, '\\@'),
  gemini: (sent) => sent.replace(/^\//, ' /').replace(/@(?=note|helper)/, '\\@'),
};

test.each(REAL_ENGINES)('%s: each reply arrives as text, and adds nothing', async (engine) => {
  const bench = await openRealBench(engine);
  plant(bench);
  let run = await bench.play('Start. [[answer One.]]', { execution_mode: 'interactive' });
  for (const [index, reply] of REPLIES.entries()) {
    expect(run.status, reply).toBe('waiting_user');
    const marker = `[[answer ${index}.]]`;
    run = await bench.reply(run.run_id, `${reply} ${marker}`);
    const words = lastWords(bench, marker);
    const sent = `${reply} ${marker}`;
    const expected = ESCAPED[engine]?.(sent) ?? sent;
    expect(
      words.filter((text) => text !== expected),
      reply,
    ).toEqual([]);
    expect(words.length, reply).toBeGreaterThan(0);
  }
  expect(JSON.stringify(bench.model.requests.map(({ body }) => body))).not.toMatch(BROUGHT);
});

test.each(REAL_ENGINES)('%s: a prompt that looks like a command is the prompt', async (engine) => {
  for (const prompt of ['/quit [[answer Stayed.]]', '@note.txt [[answer Stayed.]]']) {
    const bench = await openRealBench(engine);
    plant(bench);
    expect(await bench.play(prompt)).toMatchObject({ status: 'succeeded', result: 'Stayed.' });
    expect(JSON.stringify(bench.model.requests.map(({ body }) => body))).not.toMatch(BROUGHT);
  }
});
