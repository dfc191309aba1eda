// Writes src/contract/ (and the messages of src/client/) from contract/*.json: types for the compiler, schemas for the
// validators. Also writes contract/config.schema.json from the schema of the settings. With --check it writes nothing
// and fails when a file differs.
import { fileURLToPath } from 'node:url';
import { compile } from 'json-schema-to-typescript';
import { runnerImport } from 'vite';
import { z } from 'zod';
import { readJson, writeOrCheck } from './generated-files.mjs';

const root = new URL('../', import.meta.url);
const banner = (source) => `// Generated from contract/${source} by \`npm run generate\`. Do not edit.\n`;

// The compiler gets one interface whose members are the event types, so `RaspData['agent.usage']` is a type.
async function dataTypes(name, file, schema) {
  const types = schema.allOf.map((rule) => rule.then.properties.data.$ref.slice('#/$defs/'.length));
  const source = {
    title: name,
    type: 'object',
    additionalProperties: false,
    required: types,
    properties: Object.fromEntries(types.map((type) => [type, { $ref: `#/$defs/${type}` }])),
    $defs: schema.$defs,
  };
  const text = await compile(titled(source, name), name, {
    bannerComment: '',
    additionalProperties: false,
    format: false,
  });
  return (
    `${banner(file)}${allowUndefined(text.trim())}\n\nexport const ${name.toUpperCase().replace('DATA', '_TYPES')} = ` +
    `${JSON.stringify(types, null, 2)} as const satisfies readonly (keyof ${name})[];\n`
  );
}

// An optional member that is undefined is not written: JSON leaves it out.
function allowUndefined(text) {
  return text
    .replaceAll(/^(\w+\?: )([^{\n]+)$/gm, '$1$2 | undefined')
    .replaceAll(/^(\w+\?: \{[^}]*\}(?:\[\])?)$/gm, '$1 | undefined');
}

// Gives definitions a title of their own, otherwise the generated names depend on their order.
function titled(source, name) {
  const prefix = name.replace('Data', '');
  const pascal = (key) =>
    prefix +
    key
      .split(/[._]/)
      .map((word) => word[0].toUpperCase() + word.slice(1))
      .join('');
  const $defs = Object.fromEntries(
    Object.entries(source.$defs).map(([key, schema]) => [key, { ...schema, title: pascal(key) }]),
  );
  $defs.json = { ...$defs.json, tsType: 'Json' };
  return { ...source, $defs: openObjects($defs) };
}

// An object without declared members holds any JSON.
function openObjects(node) {
  if (Array.isArray(node)) return node.map(openObjects);
  if (node === null || typeof node !== 'object') return node;
  if (node.type === 'object' && !node.properties && !node.additionalProperties)
    return { ...node, tsType: 'JsonObject' };
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, openObjects(value)]));
}

const rasp = await readJson('contract/rasp.schema.json');
const fcmp = await readJson('contract/fcmp.schema.json');
const errors = await readJson('contract/errors.json');
const chineseErrors = await readJson('contract/errors.zh-CN.json');
const phrases = await readJson('contract/phrases.json');
const chinesePhrases = await readJson('contract/phrases.zh-CN.json');
const sticky = await readJson('contract/sticky.json');
const chart = await readJson('contract/run.statechart.json');

const meanings = (from) =>
  Object.fromEntries(
    Object.entries(from)
      .filter(([, entry]) => entry.kind === 'run')
      .map(([code, { retryable, meaning }]) => [code, { retryable, meaning }]),
  );
const codes = (kind) =>
  Object.entries(errors)
    .filter(([, entry]) => entry.kind === kind)
    .map(([code]) => JSON.stringify(code));
// The codes of contract/sticky.json are those of runs.
const ofKind = (kind) => Object.entries({ ...errors, ...sticky.errors }).filter(([, entry]) => entry.kind === kind);
function messagesOf(entries) {
  const all = {};
  for (const [code, { message, messages = {} }] of entries) {
    if (message !== undefined) all[code] = message;
    for (const [name, text] of Object.entries(messages)) all[`${code}.${name}`] = text;
  }
  return all;
}
// A hint belongs to a code, or to one of its messages; an empty one replaces the hint of the code by none.
function hintsOf(entries) {
  const all = {};
  for (const [code, { hint, hints = {} }] of entries) {
    if (hint !== undefined) all[code] = hint;
    for (const [name, text] of Object.entries(hints)) all[`${code}.${name}`] = text;
  }
  return all;
}
const chineseOfKind = (kind) => {
  const known = new Set(ofKind(kind).map(([code]) => code));
  return Object.entries(chineseErrors).filter(([code]) => known.has(code));
};
const OF_CLIENT = ['INTERNAL.response_not_json', 'INTERNAL.event_order', 'INTERNAL.response_status'];
const clientMessages = {
  ...messagesOf(ofKind('client')),
  ...Object.fromEntries(OF_CLIENT.map((name) => [name, messagesOf(ofKind('run'))[name]])),
};
const clientMessagesFile = [
  banner('errors.json'),
  `// The messages of errors that a client itself creates.\n` +
    `export const CLIENT_MESSAGES = ${JSON.stringify(clientMessages, null, 2)} as const;\n`,
].join('\n');
const withoutComment = (texts) => Object.fromEntries(Object.entries(texts).filter(([name]) => name !== '$comment'));
const union = (name, members) => `export type ${name} =\n  | ${members.join('\n  | ')};\n`;
const json = (text) =>
  text.replace(
    'Do not edit.\n',
    `Do not edit.\nimport type { ${text.includes('JsonObject') ? 'Json, JsonObject' : 'Json'} } from ` +
      `'../kernel/json.js';\n\n`,
  );

const files = {
  'rasp-data.ts': json(await dataTypes('RaspData', 'rasp.schema.json', rasp)),
  'fcmp-data.ts': json(await dataTypes('FcmpData', 'fcmp.schema.json', fcmp)),
  'error-codes.ts': [
    banner('errors.json and contract/sticky.json'),
    union('RunErrorCode', codes('run')),
    union(
      'StickyErrorCode',
      Object.keys(sticky.errors).map((code) => JSON.stringify(code)),
    ),
    union('RequestErrorCode', codes('request')),
    union('DiagnosticCode', codes('diagnostic')),
    `// The messages of refused calls. A code with several messages has a name for each: CODE.name.\n` +
      `export const REQUEST_MESSAGES = ${JSON.stringify(messagesOf(ofKind('request')), null, 2)} as const;\n`,
    `// What the caller can do, by code or message.\nexport const REQUEST_HINTS: Readonly<Record<string, string>> = ` +
      `${JSON.stringify(hintsOf(ofKind('request')), null, 2)};\n`,
    `// The messages of failed runs, named in the same way.\n` +
      `export const RUN_MESSAGES = ${JSON.stringify(messagesOf(ofKind('run')), null, 2)} as const;\n`,
    `// What the caller can do about a failed run, by code or message.\n` +
      'export const RUN_HINTS: Readonly<Record<string, string>> = ' +
      `${JSON.stringify(hintsOf(ofKind('run')), null, 2)};\n`,
    `// Why a run fails, by code.\nexport const RUN_ERRORS: Readonly<Record<RunErrorCode, ErrorMeaning>> = ` +
      `${JSON.stringify(meanings(errors), null, 2)};\n`,
    'export const STICKY_ERRORS: Readonly<Record<StickyErrorCode, ErrorMeaning>> = ' +
      `${JSON.stringify(meanings(sticky.errors), null, 2)};\n`,
    `export interface ErrorMeaning {\n  readonly retryable: boolean;\n  readonly meaning: string;\n}\n`,
    `export const HTTP_STATUS = ${JSON.stringify(
      Object.fromEntries(
        Object.entries(errors)
          .filter(([, entry]) => entry.kind === 'request' || entry.http_status)
          .map(([code, entry]) => [code, entry.http_status]),
      ),
      null,
      2,
    )} as const satisfies Record<RequestErrorCode | 'INTERNAL', number>;\n`,
  ].join('\n'),
  'phrases.ts': [
    `${banner('phrases.json')}\n// Parts of messages, by name.\n` +
      `export const PHRASES = ${JSON.stringify(withoutComment(phrases), null, 2)} as const;\n`,
  ].join('\n'),
  'client-messages.ts': clientMessagesFile,
  'error-texts-zh-cn.ts': [
    `${banner('errors.zh-CN.json and contract/phrases.zh-CN.json')}` +
      `import type { REQUEST_MESSAGES, RUN_MESSAGES } from './error-codes.js';\n` +
      `import type { PHRASES } from './phrases.js';\n`,
    `// By the keys of the English texts. A missing text is shown in English.\n` +
      'export const REQUEST_MESSAGES_ZH_CN: Readonly<Partial<Record<keyof typeof REQUEST_MESSAGES, string>>> = ' +
      `${JSON.stringify(messagesOf(chineseOfKind('request')), null, 2)};\n`,
    'export const REQUEST_HINTS_ZH_CN: Readonly<Partial<Record<string, string>>> = ' +
      `${JSON.stringify(hintsOf(chineseOfKind('request')), null, 2)};\n`,
    'export const RUN_MESSAGES_ZH_CN: Readonly<Partial<Record<keyof typeof RUN_MESSAGES, string>>> = ' +
      `${JSON.stringify(messagesOf(chineseOfKind('run')), null, 2)};\n`,
    'export const RUN_HINTS_ZH_CN: Readonly<Partial<Record<string, string>>> = ' +
      `${JSON.stringify(hintsOf(chineseOfKind('run')), null, 2)};\n`,
    `export const CLIENT_MESSAGES_ZH_CN: Readonly<Record<string, string>> = ` +
      `${JSON.stringify(messagesOf(chineseOfKind('client')), null, 2)};\n`,
    'export const PHRASES_ZH_CN: Readonly<Partial<Record<keyof typeof PHRASES, string>>> = ' +
      `${JSON.stringify(withoutComment(chinesePhrases), null, 2)};\n`,
  ].join('\n'),
  'chart-names.ts': [
    banner('run.statechart.json and contract/sticky.json'),
    union(
      'RunState',
      chart.states.map((state) => JSON.stringify(state)),
    ),
    union(
      'RunEvent',
      chart.events.map((event) => JSON.stringify(event)),
    ),
    union(
      'GuardName',
      [...Object.keys(chart.guards), ...Object.keys(sticky.guards)].map((guard) => JSON.stringify(guard)),
    ),
  ].join('\n'),
  'schemas.ts': [
    `${banner('*.schema.json')}export const raspSchema = ${JSON.stringify(rasp)};\n`,
    `export const fcmpSchema = ${JSON.stringify(fcmp)};\n`,
  ].join('\n'),
};

// The JSON Schema of config.json, for editors and other tools. Vite loads the TypeScript source, so no build is needed.
async function configSchema() {
  const { module } = await runnerImport(fileURLToPath(new URL('src/settings/settings.ts', root)));
  return `${JSON.stringify(z.toJSONSchema(module.settingsSchema, { io: 'input' }), null, 2)}\n`;
}

// First, because the source of the settings imports these files.
await writeOrCheck(
  new Map([
    ...Object.entries(files).map(([name, text]) => [`src/contract/${name}`, text]),
    // The client imports no code from outside its folder.
    ['src/client/client-messages.ts', clientMessagesFile],
  ]),
);
await writeOrCheck(new Map([['contract/config.schema.json', await configSchema()]]));
