// Phrases that keep readers out do not come back: comments, messages and pages name the thing and use technical terms.
// Recorded and generated texts are left out, because their words follow from other files.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const ROOT = new URL('../../', import.meta.url);
const PLACES = ['src', 'console', 'docs', 'tests', 'bench', 'scripts', 'examples', '.ci', ':/*.md'];
const TEXT = /(?:\.(?:tsx?|m[jt]s|css|html|md|yml|yaml|service)|^\.ci\/run)$/;
const LEFT_OUT = /^(?:src\/contract\/|tests\/golden\/|tests\/old-databases\/|tests\/docs\/plain-words)|\.zh-CN\.md$/;

// The phrase, and the words to use instead.
const PHRASES: readonly (readonly [phrase: RegExp, instead: string])[] = [
  [/\bwhoever\b/gi, 'the process, caller or reader'],
  [/(?<=^|[.:;,(`'"/] ?)\bwhat (?:is|was|has|had)\b(?! (?:it|your|the|this|that)\b)/gi, 'the name of the thing'],
  [/\b(?:is|are) told\b/gi, 'is notified, is reported, receives'],
  [/\bgoes on\b/gi, 'continues'],
  [/(?<!\w)stands? in (?!for\b)/gi, 'is in'],
  [/\bshall\b/g, 'should, will'],
  [/, too(?=[.;:,)\n]|$)/gi, 'also'],
  [/, be it\b/gi, 'whether'],
  [/\bby stdin\b/gi, 'on stdin'],
  [/\bwithout a word\b/gi, 'silently'],
  [/\b(?:asks?|asked|waits?|waited) for leave\b/gi, 'permission, approval'],
  [/\bmade whole\b/gi, 'repaired'],
  [/\bstrangers?\b/gi, 'an unauthenticated caller'],
  [/^Answers (?:the|a|an|how|which|whether|what|true|false|null)\b(?! (?:open )?question)/g, 'Returns'],
];

// Fixed texts: a recorded message, the stored text of a fold version, a rule id, and tests of such words.
const KEPT: Readonly<Record<string, readonly string[]>> = {
  'src/fcmp/fold.ts': ['The turn goes on.'],
  'tests/fcmp/fold.test.ts': ['The turn goes on.'],
  'src/run/judge-completion.ts': ['conversation goes on'],
  'docs/internals/judgement.md': ['conversation goes on'],
  'src/rehearsal/scene.ts': ['How shall I go on?'],
  'tests/slow/cli/chinese.test.ts': ['How shall I go on?'],
  'tests/slow/cli/help.test.ts': ['How shall I go on'],
  'tests/contract/error-messages.test.ts': ['whoever'],
};

// Markdown blocks between these marks are generated.
const GENERATED = /<!-- generated: [^]*?<!-- end -->/g;

// Whole sentences: comments and strings that continue on the next line are joined.
const readSentences = (path: string): string[] => {
  let text = readFileSync(new URL(path, ROOT), 'utf8').replaceAll(GENERATED, '');
  for (const kept of KEPT[path] ?? []) text = text.replaceAll(kept, '');
  const isMarkdown = path.endsWith('.md');
  const joined = isMarkdown
    ? text.replaceAll(/\n(?=[^\n\s|#`<-])/g, ' ')
    : text.replaceAll(/\n\s*(?:\/\/|#|\*)(?: |$)(?=[a-z`])/g, ' ').replaceAll(/['"`] \+\n\s*['"`]/g, '');
  return joined.split('\n').map((line) => line.replace(/^\s*(?:\/\/|\/?\*+|#+) ?/, ''));
};

const findPhrases = (sentence: string): string[] =>
  PHRASES.flatMap(([phrase, instead]) =>
    (sentence.match(phrase) ?? []).map((found) => `"${found.trim()}" (use: ${instead}) in: ${sentence.trim()}`),
  );

test('no text has a phrase that plain English drops', () => {
  const paths = execFileSync('git', ['ls-files', '--', ...PLACES], { cwd: ROOT, encoding: 'utf8' })
    .split('\n')
    .filter((path) => TEXT.test(path) && !LEFT_OUT.test(path));
  expect(paths.length).toBeGreaterThan(1000);
  const problems = paths.flatMap((path) =>
    readSentences(path).flatMap((sentence) => findPhrases(sentence).map((problem) => `${path}: ${problem}`)),
  );
  expect(problems).toEqual([]);
});

// Participles that say nothing about the value. A member of wire data may have such a name.
const NAMES =
  /\b(?:const|let|function|class|interface|type) (told|given|found|meant|wish|begun|plays|played|usable)\b/gi;

// Its object of findings is part of the sentences that it builds.
const KEPT_NAMES: ReadonlySet<string> = new Set(['src/cli/administration/find-damage.ts: const found']);

test('no variable, function or type has a participle as its name', () => {
  const paths = execFileSync('git', ['ls-files', '--', ...PLACES], { cwd: ROOT, encoding: 'utf8' })
    .split('\n')
    .filter((path) => /\.(?:tsx?|m[jt]s)$/.test(path) && !LEFT_OUT.test(path));
  const problems = paths.flatMap((path) =>
    [...readFileSync(new URL(path, ROOT), 'utf8').matchAll(NAMES)].map(([text]) => `${path}: ${text}`),
  );
  expect(problems.filter((problem) => !KEPT_NAMES.has(problem))).toEqual([]);
});

test.each([
  ['What is damaged is reported.', 1],
  ['Whoever waits is told.', 2],
  ['The run goes on, too.', 2],
  ['Answers the run.', 1],
  ['Answers the question with the number.', 0],
  ['A stand-in for the engine, which stands in for it.', 0],
  ['The pages are too long, too much to show.', 0],
])('%s has %i of them', (sentence, count) => {
  expect(findPhrases(sentence)).toHaveLength(count);
});
