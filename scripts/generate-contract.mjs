// Writes src/contract/ from contract/*.json: types for the compiler, schemas for the validators. Also the tables of
// event types and codes in docs/protocol/. With --check it writes nothing and fails when a file differs, so the two can
// never drift apart.
import { readFile, writeFile } from 'node:fs/promises';
import { compile } from 'json-schema-to-typescript';

const root = new URL('../', import.meta.url);
const readJson = async (name) => JSON.parse(await readFile(new URL(`contract/${name}`, root), 'utf8'));
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

// Definitions get a title of their own, else the generated names depend on their order.
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

const rasp = await readJson('rasp.schema.json');
const fcmp = await readJson('fcmp.schema.json');
const errors = await readJson('errors.json');
const sticky = await readJson('sticky.json');
const chart = await readJson('run.statechart.json');

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

// A table of event types: the required members, then the optional ones with a question mark.
function eventTable(schema) {
  const rows = schema.allOf.map((rule) => {
    const type = rule.then.properties.data.$ref.slice('#/$defs/'.length);
    const { description, properties, required } = schema.$defs[type];
    const members = Object.keys(properties).map((name) => (required.includes(name) ? name : `${name}?`));
    return `| \`${type}\` | ${members.map((name) => `\`${name}\``).join(' ')} | ${description} |`;
  });
  return ['| type | data | meaning |', '|---|---|---|', ...rows].join('\n');
}

function codeTable(kind) {
  const rows = Object.entries(errors)
    .filter(([, entry]) => entry.kind === kind)
    .map(([code, { meaning }]) => `| \`${code}\` | ${meaning} |`);
  return ['| code | meaning |', '|---|---|', ...rows].join('\n');
}

async function withTable(page, name, table) {
  const text = pages.get(page) ?? (await readFile(new URL(page, root), 'utf8'));
  const start = `<!-- generated: ${name} -->`;
  const from = text.indexOf(start);
  const to = text.indexOf('<!-- end -->', from);
  if (from < 0 || to < 0) throw new Error(`${page} has no place for ${name}`);
  pages.set(page, `${text.slice(0, from)}${start}\n${table}\n${text.slice(to)}`);
}

const pages = new Map();
await withTable('docs/protocol/rasp.md', 'types', eventTable(rasp));
await withTable('docs/protocol/rasp.md', 'diagnostics', codeTable('diagnostic'));
await withTable('docs/protocol/rasp.md', 'run errors', codeTable('run'));
await withTable('docs/protocol/fcmp.md', 'types', eventTable(fcmp));

const outputs = new Map([...Object.entries(files).map(([name, text]) => [`src/contract/${name}`, text]), ...pages]);
const check = process.argv.includes('--check');
let stale = 0;
for (const [path, text] of outputs) {
  const url = new URL(path, root);
  if (!check) await writeFile(url, text);
  else if ((await readFile(url, 'utf8').catch(() => '')) !== text) {
    stale += 1;
    console.error(`${path} is not what contract/ says: run npm run generate`);
  }
}
process.exitCode = stale ? 1 : 0;
