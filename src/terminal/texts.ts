// The texts that people see in a conversation on the terminal, in one language. The command line chooses the language
// once, before it shows anything. Output of engines is never translated.
import { explainError, type ErrorLanguage, type ExplainedError } from '../messages/explain-error.js';

export const ENGLISH_TERMINAL = {
  approvalPagePrompt: 'Enter: next page, y!: approve unread, [n]o, [c] no and stop > ',
  approvalPrompt: '[y]es, for the [s]ession, [n]o, [c] no and stop ',
  conversationPrompt: '/finish ends it, /later leaves it ',
  optionPrompt: (range: string) => `${range} or text `,
  defaultPrompt: (value: string) => `Enter: ${value} `,
  alreadyAnswered: 'the question has already been answered',
  noOptions: 'this question has no options',
  optionSends: (place: number, value: string) => `--option ${place} sends ${value}`,
  valueSends: (options: string) => `. ${options}; --value JSON sends any other value`,
  unknownSlashCommand: (command: string, commands: string) =>
    `there is no ${command}: ${commands}; to send it as the answer, put a space before it`,
  slashCommands: '/later leaves the question waiting, /cancel cancels the run',
  slashCommandsWithFinish: '/later leaves the question waiting, /finish ends the conversation, /cancel cancels the run',
  finishRefused: 'the agent asked a question: answer it, or /cancel the run; /later leaves it waiting',
  defaultSent: (value: string) => `${value} (the default)`,
  optionSent: (value: string, place: number) => `${value} (option ${place})`,
  labelledOptionSent: (value: string, place: number, label: string) => `${value} (option ${place}, ${label})`,
  answerNeeded: 'an answer is needed; /later leaves the question waiting, /cancel cancels the run',
  noSuchOption: (number: number, count: number) =>
    `there is no option ${number}: choose 1 to ${count}, or type your own answer`,
  reading: (place: number, label: string) => `option ${place}, "${label}" (type #${place})`,
  ambiguous: (readings: string) => `that can mean ${readings}: nothing was sent`,
  or: ' or ',
  notAllSeen: 'you have not seen all of it: Enter shows the next page; y! approves without reading',
  approvalLetters:
    'y approves, s approves for the whole session, n declines, c declines and stops; a note may follow: ' +
    '"n because …", "s: …"',
  decisions: {
    approve: 'approve',
    approve_for_session: 'approve for session',
    decline: 'decline',
    cancel: 'cancel',
  } as Readonly<Record<string, string>>,
  declined: 'You declined this. The agent has been told.',
  declinedAndStopped: 'You declined this and stopped the agent. It has been told.',
  sent: (text: string) => `Sent: ${text}`,
  cutOff: '(cut off: too long)',
  turn: (number: number) => `turn ${number}`,
  mode: { interactive: 'interactive', auto: 'auto' } as Readonly<Record<string, string>>,
  fileChanges: { add: 'added', update: 'changed', delete: 'deleted', unknown: 'touched' },
  decided: {
    approve: 'approved',
    approve_for_session: 'approved for the session',
    decline: 'declined',
    cancel: 'declined and stopped',
  } as Readonly<Record<string, string>>,
  units: { ms: 'ms', s: 's', m: 'm', h: 'h', d: 'd' },
  and: ', ',
  withAnswer: (text: string, answer: string) => `${text}: ${answer}`,
  by: (text: string, name: string) => `${text} by ${name}`,
  finished: 'finished',
  answered: 'answered',
  notAllShown: ', not all of it was shown',
  decidedByPolicy: (policy: string) => `nobody answered in time, decided by the policy ${policy}`,
  done: 'done',
  moreLines: (count: number) => `… ${count} more lines`,
  failed: (code: string) => `failed: ${code}`,
  canceled: 'canceled',
  engineDetails: (summary: string) => `· engine details: ${summary}`,
  stderrLines: (count: number) => `${count} ${count === 1 ? 'line' : 'lines'} of stderr`,
  stdoutLines: (count: number) => `${count} ${count === 1 ? 'line' : 'lines'} of stdout`,
  warnings: (count: number) => `${count} ${count === 1 ? 'warning' : 'warnings'}`,
  doneMarker: 'the done marker',
  queued: 'queued',
  starting: (engine: string) => `starting ${engine}`,
  doing: { starting: 'starting', thinking: 'thinking', writing: 'writing' },
  moreRunning: (count: number) => `${count} more running`,
  tokens: (count: string) => `${count} tokens`,
  exit: (code: number) => `exit ${code}`,
  tokenFigures: (parts: string) => `tokens ${parts}`,
  soFar: ' so far',
  inputTokens: (count: string) => `${count} in`,
  outputTokens: (count: string) => `${count} out`,
  cachedTokens: (count: string) => ` (${count} cached)`,
  thinkingTokens: (count: string) => ` (${count} thinking)`,
  overdue: 'overdue: it has waited longer than its time limit',
  turnEnded: 'The agent ended its turn. Say more, or finish.',
  severalQuestions: (count: number) => `The agent has ${count} questions:`,
  permissionAsked: (prompt: string) => `The agent asks for permission: ${prompt}`,
  changeKinds: { add: 'new', delete: 'deleted', update: 'changed' } as Readonly<Record<string, string>>,
  changeSummary: (files: number, added: number, removed: number) =>
    `${files === 1 ? '1 file' : `${files} files`}, +${added} −${removed}`,
  invisible: (count: number) =>
    `This text contains ${count} invisible or control ${count === 1 ? 'character' : 'characters'}, shown as ⟨U+…⟩.`,
  default: (value: string) => `default: ${value}`,
};

export type TerminalTexts = typeof ENGLISH_TERMINAL;

let current: TerminalTexts = ENGLISH_TERMINAL;
let errors: ErrorLanguage | null = null;

export function terminalTexts(): TerminalTexts {
  return current;
}

// The message of a failed run in the language of the texts.
export function explainFailure(error: ExplainedError): string {
  return explainError(error, errors).message;
}

export function setTerminalTexts(texts: TerminalTexts, language: ErrorLanguage | null): void {
  current = texts;
  errors = language;
}
