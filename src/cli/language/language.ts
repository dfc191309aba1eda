// The language of the command line, chosen once per process from PARLEY_LANG. English is the default. The Chinese texts
// are loaded only when they are needed, so that they do not slow an English start. JSON output, logs and the output of
// engines stay as they are.
import { REQUEST_HINTS, REQUEST_MESSAGES } from '../../contract/error-codes.js';
import { translate, type Message, type Translation } from '../../kernel/message.js';
import { fillTemplate, type Values } from '../../kernel/message-template.js';
import { DamagedDataError } from '../../kernel/stored-json.js';
import { RequestError } from '../../run/request-error.js';
import { setTerminalTexts } from '../../terminal/texts.js';
import type { Io } from '../io.js';
import { ENGLISH, type Texts } from './en.js';

interface ErrorTexts {
  readonly messages: Readonly<Partial<Record<string, string>>>;
  readonly hints: Readonly<Partial<Record<string, string>>>;
}

interface Language {
  readonly texts: Texts;
  // Null: the messages of errors are shown as they are.
  readonly errors: ErrorTexts | null;
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
  setTerminalTexts(current.texts.terminal);
  if (value !== '' && value.toLowerCase() !== 'en' && !isChinese(value))
    stderr.write(`${ENGLISH.say.unknownLanguage(JSON.stringify(value))}\n`);
}

function isChinese(value: string): boolean {
  return /^zh(?:-cn)?$/i.test(value);
}

async function loadChinese(): Promise<Language> {
  const [{ CHINESE }, { CHINESE_MESSAGES: messages }, errors] = await Promise.all([
    import('./zh-cn.js'),
    import('./messages-zh-cn.js'),
    import('../../contract/error-texts-zh-cn.js'),
  ]);
  return {
    texts: CHINESE,
    errors: { messages: errors.REQUEST_MESSAGES_ZH_CN, hints: errors.REQUEST_HINTS_ZH_CN },
    messages,
  };
}

// A message of the rest of the program in the chosen language.
export function sayMessage(message: Message): string {
  return current.messages === null ? message.text : translate(message, current.messages);
}

type Refusal = Pick<RequestError, 'code' | 'message' | 'values' | 'hint'>;

// The message of any error: that of a refused call or of damage in the chosen language, every other as it is.
export function sayError(error: unknown): string {
  if (error instanceof DamagedDataError) return sayMessage(error.damage);
  return error instanceof RequestError ? explainRefusal(error).message : (error as Error).message;
}

// The message and hint of an error in the chosen language. A message without a translation stays English.
export function explainRefusal({ code, message, values, hint }: Refusal): {
  message: string;
  hint: string | undefined;
} {
  const { errors } = current;
  const name = errors && findMessage({ code, message, values });
  if (!errors || name === null) return { message, hint: hint && translateHint(code, hint) };
  const template = errors.messages[name];
  return {
    message: template === undefined ? message : fillTemplate(template, values),
    hint: hint && translateHint(name, hint),
  };
}

// Errors of workers and servers arrive without the name of their message, so it is found by its English text.
function findMessage({ code, message, values }: Omit<Refusal, 'hint'>): string | null {
  for (const [name, template] of Object.entries(REQUEST_MESSAGES))
    if ((name === code || name.startsWith(`${code}.`)) && fits(template, { message, values })) return name;
  return null;
}

function fits(template: string, { message, values }: { readonly message: string; readonly values: Values }): boolean {
  const names = Array.from(template.matchAll(/\{([a-z_]+)\}/g), ([, name = '']) => name);
  return names.every((name) => Object.hasOwn(values, name)) && fillTemplate(template, values) === message;
}

function translateHint(name: string, hint: string): string {
  const [code = ''] = name.split('.');
  const key = [name, code].find((each) => REQUEST_HINTS[each] === hint);
  return (key === undefined ? undefined : current.errors?.hints[key]) ?? hint;
}
