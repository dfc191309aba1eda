// Every help page in both languages: each command, argument and option has a text of its own in Chinese, and no English
// sentence is left on a Chinese page.
import { PassThrough } from 'node:stream';
import type { Command } from 'commander';
import { afterEach, expect, test } from 'vitest';
import { buildProgram } from '../../src/cli/build-program.js';
import { chooseLanguage } from '../../src/cli/language/language.js';
import { findEnglish, hasChinese } from '../support/chinese.js';
import { createIo } from '../support/io.js';

interface Pages {
  // Command and part: the text.
  readonly texts: ReadonlyMap<string, string>;
  // Command: its help page.
  readonly pages: ReadonlyMap<string, string>;
}

async function readHelp(language: string): Promise<Pages> {
  await chooseLanguage([], { env: { PARLEY_LANG: language }, stderr: new PassThrough() });
  const stdout = new PassThrough();
  const io = createIo({ stdin: new PassThrough(), stdout, stderr: new PassThrough() });
  const program = buildProgram(io, { printErrors: true, act: async () => {} });
  const texts = new Map<string, string>();
  const pages = new Map<string, string>();
  const read = (command: Command, path: string): void => {
    texts.set(`${path} (description)`, command.description());
    if (command.summary() !== '') texts.set(`${path} (summary)`, command.summary());
    for (const argument of command.registeredArguments)
      if (argument.description !== '') texts.set(`${path} <${argument.name()}>`, argument.description);
    for (const option of command.options) if (!option.hidden) texts.set(`${path} ${option.flags}`, option.description);
    command.outputHelp();
    pages.set(path, String(stdout.read() ?? ''));
    const shown = command.createHelp().visibleCommands(command);
    for (const inner of shown.filter((each) => each.name() !== 'help')) read(inner, `${path} ${inner.name()}`);
  };
  read(program, 'parley');
  return { texts, pages };
}

// The language is a value of the module, which other tests of this process share.
afterEach(() => chooseLanguage([], { env: {}, stderr: new PassThrough() }));

test('each command, argument and option is described in both languages', async () => {
  const english = (await readHelp('en')).texts;
  const chinese = (await readHelp('zh')).texts;
  expect([...chinese.keys()]).toEqual([...english.keys()]);
  expect(english.size).toBeGreaterThan(150);
  const wrong = [...chinese].filter(
    ([key, text]) => !hasChinese(text) || text === english.get(key) || hasChinese(english.get(key) ?? ''),
  );
  expect(wrong).toEqual([]);
});

test('no help page in Chinese has an English sentence or heading', async () => {
  const { pages } = await readHelp('zh');
  expect(pages.size).toBeGreaterThan(35);
  const wrong = [...pages].flatMap(([path, page]) =>
    page.split('\n').flatMap((line) => {
      const english = findEnglish(line) ?? /\b(?:Usage|Options|Arguments|Commands|default|choices):/.exec(line)?.[0];
      return english === undefined || english === null ? [] : [`${path}: ${english}`];
    }),
  );
  expect(wrong).toEqual([]);
});

test('no help page in English has a Chinese character', async () => {
  const { pages } = await readHelp('en');
  expect([...pages].filter(([, page]) => hasChinese(page)).map(([path]) => path)).toEqual([]);
});
