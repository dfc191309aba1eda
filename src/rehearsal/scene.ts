// The default script for a prompt without directives: some text, a tool call and a question; after the reply it repeats
// the answer and finishes. If it must not ask, it decides itself.
import type { Step } from './directives.js';

// A script can contain more than a prompt can express: streamed text, and parts that depend on the reply.
export type Part =
  | Step
  | { readonly type: 'stream'; readonly text: string }
  // Prints the answer; `done` ends the script.
  | { readonly type: 'take_up'; readonly done: boolean }
  // The decision about a command is there: it is played, or it is not.
  | { readonly type: 'decided'; readonly command: string };

const QUESTION = 'How shall I go on?';
const OPTIONS = ['Carefully', 'Quickly', 'Not at all'] as const;
const COMMAND = 'ls -la';
const MOMENT: Step = { type: 'sleep', ms: 60 };
// The words for it are Parley's (src/run/turn-prompt.ts), but a person may say them too.
const TOLD_NOT_TO_ASK = /\bdo not ask\b/i;
const MAX_QUOTED_CHARS = 80;

export function buildScene(prompt: string): Part[] {
  const opening: Part[] = [
    {
      type: 'stream',
      text:
        'This is a rehearsal: a script plays an agent, and nothing is executed. You asked for ' +
        `"${quote(prompt)}". First I look around.`,
    },
    MOMENT,
    { type: 'tool', command: COMMAND },
    MOMENT,
  ];
  if (!TOLD_NOT_TO_ASK.test(prompt))
    return [...opening, { type: 'ask', question: QUESTION, options: OPTIONS }, { type: 'take_up', done: true }];
  const [decided] = OPTIONS;
  return [
    ...opening,
    { type: 'stream', text: `I was told not to ask, so I decided myself: ${decided.toLowerCase()}.` },
    { type: 'done', result: { rehearsal: true, decided } },
  ];
}

// The beginning of what a person wrote.
export function quote(text: string): string {
  const [line = ''] = text.trim().split('\n', 1);
  return line.length <= MAX_QUOTED_CHARS ? line : `${line.slice(0, MAX_QUOTED_CHARS).trimEnd()}…`;
}
