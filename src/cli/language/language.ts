// The language of the command line, chosen once per process from PARLEY_LANG. English is the default. The Chinese texts
// are loaded only when they are needed, so that they do not slow an English start. JSON output, logs and the output of
// engines stay as they are.
import { explainError, type ErrorLanguage, type ExplainedError } from '../../messages/explain-error.js';
import type { Phrase } from '../../kernel/fill-template.js';
import { renderTerm, textOf } from '../../messages/phrase.js';
import { translate, type Message, type Translation } from '../../kernel/message.js';
import { DamagedDataError } from '../../kernel/stored-json.js';
import { RequestError } from '../../run/request-error.js';
import { setTerminalTexts } from '../../terminal/texts.js';
import type { Io } from '../io.js';
import { ENGLISH, type Texts } from './en.js';

interface Language {
  readonly texts: Texts;
  // Null: the messages of errors are shown as they are.
  readonly errors: ErrorLanguage | null;
  // Null: other messages are shown in English.
  readonly messages: Translation | null;
}

const ENGLISH_ONLY: Language = { texts: ENGLISH, errors: null, messages: null };
// Started by other programs, not by people.
const HIDDEN_COMMANDS: ReadonlySet<string> = new Set(['mcp-ask', 'verify-one', 'work']);

let current = ENGLISH_ONLY;

export function texts(): Texts {
  return current.texts;
}

export async function chooseLanguage(
  args: readonly string[],
  { env, stderr }: Pick<Io, 'env' | 'stderr'>,
): Promise<void> {
  const isForPrograms = args.includes('--json') || HIDDEN_COMMANDS.has(args[0] ?? '');
  const value = isForPrograms ? '' : (env['PARLEY_LANG'] ?? '');
  current = isChinese(value) ? await loadChinese() : ENGLISH_ONLY;
  setTerminalTexts(current.texts.terminal, current.errors);
  if (value !== '' && value.toLowerCase() !== 'en' && !isChinese(value))
    stderr.write(`${ENGLISH.say.unknownLanguage(JSON.stringify(value))}\n`);
}

function isChinese(value: string): boolean {
  return /^zh(?:-cn)?$/i.test(value);
}

async function loadChinese(): Promise<Language> {
  const [{ CHINESE }, { CHINESE_MESSAGES }, errors] = await Promise.all([
    import('./zh-cn.js'),
    import('./messages-zh-cn.js'),
    import('../../contract/error-texts-zh-cn.js'),
  ]);
  const catalogue = {
    texts: {
      ...errors.REQUEST_MESSAGES_ZH_CN,
      ...errors.RUN_MESSAGES_ZH_CN,
      ...errors.CLIENT_MESSAGES_ZH_CN,
      ...errors.PHRASES_ZH_CN,
    },
    isDense: true,
  };
  const hints = { ...errors.REQUEST_HINTS_ZH_CN, ...errors.RUN_HINTS_ZH_CN };
  // The values of a message may be phrases.
  const templates = { ...errors.PHRASES_ZH_CN, ...CHINESE_MESSAGES.templates };
  return { texts: CHINESE, errors: { catalogue, hints }, messages: { ...CHINESE_MESSAGES, templates } };
}

// A message of the rest of the program in the chosen language.
export function sayMessage(message: Message): string {
  return current.messages === null ? message.text : translate(message, current.messages);
}

// The message of any error: that of a refused call or of damage in the chosen language, every other as it is.
export function sayError(error: unknown): string {
  if (error instanceof DamagedDataError) return sayMessage(error.damage);
  return error instanceof RequestError ? explainRefusal(error).message : (error as Error).message;
}

// The message and hint of an error in the chosen language. A message without a translation stays English.
export function explainRefusal(error: ExplainedError): { readonly message: string; readonly hint: string | undefined } {
  return explainError(error, current.errors);
}

// A sentence of a message in the chosen language.
export function explainPhrase(phrase: Phrase): string {
  return (current.errors === null ? null : renderTerm(phrase, current.errors.catalogue)) ?? textOf(phrase);
}
