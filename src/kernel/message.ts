// A text for people that can be shown in another language: the key of its template, its values and the English text.
// The code that reports something knows only English; the command line fills the template of its language. Messages
// are plain data, so they also cross a process boundary.
import { fillTemplate, type NameIn } from './fill-template.js';

export interface Message {
  readonly key: string;
  readonly values: MessageValues;
  readonly text: string;
}

// A value may be a message of its own, or a list.
export type MessageValue = string | number | Message | readonly (string | number)[];
type MessageValues = Readonly<Record<string, MessageValue>>;

// The argument list after a template: empty if the template has no values.
type ValuesOf<T extends string> = [NameIn<T>] extends [never]
  ? []
  : [values: Readonly<Record<NameIn<T>, MessageValue>>];

// A text that exists in English only, such as the message of a library.
export function verbatim(text: string): Message {
  return { key: '', values: {}, text };
}

// The templates of another language by key, and how it separates the values of a list.
export interface Translation {
  readonly templates: Readonly<Record<string, string>>;
  readonly separator: string;
}

// Returns the function that creates the messages of these templates: keys and values are checked by the compiler.
export function createMessages<const T extends Readonly<Record<string, string>>>(templates: T) {
  return <K extends keyof T & string>(key: K, ...[values]: ValuesOf<T[K]>): Message => {
    const all: MessageValues = values ?? {};
    return { key, values: all, text: fillTemplate(templates[key] as string, mapValues(all, english)) };
  };
}

function english(value: MessageValue): string {
  if (isMessage(value)) return value.text;
  return Array.isArray(value) ? value.join(', ') : String(value);
}

// Values may come from damaged data, whatever their type says.
function isMessage(value: MessageValue): value is Message {
  return typeof value === 'object' && value !== null && 'text' in value;
}

// A message without a template stays English.
export function translate(message: Message, translation: Translation): string {
  const { templates, separator } = translation;
  const template = Object.hasOwn(templates, message.key) ? templates[message.key] : undefined;
  if (template === undefined) return message.text;
  const show = (value: MessageValue): string => {
    if (isMessage(value)) return translate(value, translation);
    return Array.isArray(value) ? value.join(separator) : String(value);
  };
  return fillTemplate(template, mapValues(message.values, show));
}

function mapValues(values: MessageValues, show: (value: MessageValue) => string): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, show(value)]));
}
