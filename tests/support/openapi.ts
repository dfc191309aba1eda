// The OpenAPI document of a server as a specification: its operations, and whether a value or a response conforms.
import { Ajv2020 } from 'ajv/dist/2020.js';
import { pick, type Random } from './fuzz.js';

export interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly schema: Schema;
}

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema: object }>>;
}

export interface Operation {
  readonly method: string;
  readonly path: string;
  readonly operationId: string;
  readonly description: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content>>;
}

export interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Omit<Operation, 'method' | 'path'>>>>>;
  readonly components: object;
}

export function operationsOf(document: ApiDocument): Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) =>
      Object.assign({ path, method: method.toUpperCase() }, operation),
    ),
  );
}

const ajv = new Ajv2020({ strict: false, validateFormats: false });
const compiled = new Map<object, ReturnType<typeof ajv.compile>>();

// The problem with the value, or null.
export function explainBy(document: ApiDocument, schema: object, value: unknown): string | null {
  const check = compiled.get(schema) ?? ajv.compile({ ...schema, components: document.components });
  compiled.set(schema, check);
  return check(value) ? null : ajv.errorsText(check.errors);
}

// The documented response for this status, or null.
export function answerOf({ responses }: Operation, status: number): Content | null {
  return responses[status] ?? responses[`${Math.floor(status / 100)}XX`] ?? null;
}

// A value that the schema allows; null if only the test can know a good one.
export function goodValue(
  { type, enum: names, const: only, minimum = 0, maximum = 2 ** 31, minLength = 0, maxLength = 50 }: Schema,
  random: Random,
): string | null {
  if (only !== undefined) return String(only);
  if (names) return String(pick(random, names));
  if (type === 'integer')
    return String(pick(random, [minimum, Math.min(maximum, minimum + 1), Math.min(maximum, 2 ** 31)]));
  return type === 'string' && minLength <= maxLength ? null : '1';
}

const NONSENSE = [
  'nonsense',
  '-1',
  '1.5',
  '1e999',
  'NaN',
  'null',
  'undefined',
  '[object Object]',
  '{}',
  '%00',
  '%ff',
  '%c0%af',
  '%ed%a0%80',
  '%',
  '%zz',
  '%2e%2e%2f',
  '..%2f..%2f',
  '%E2%80%AE',
  '٣',
  '%0d%0aX-Evil:%201',
  "'%20OR%201=1--",
  '__proto__',
  '%F0%9F%98%80',
  'a'.repeat(600),
  '%20',
  ';',
  '*',
];

// As it is written in a URL.
export function badValue({ minimum, maximum, maxLength }: Schema, random: Random): string {
  const edges = [
    minimum === undefined ? null : String(minimum - 1),
    maximum === undefined || maximum > 2 ** 52 ? null : String(maximum + 1),
    maxLength === undefined ? null : 'x'.repeat(Math.min(maxLength + 1, 5000)),
  ].filter((edge) => edge !== null);
  return pick(random, [...edges, ...NONSENSE]);
}
