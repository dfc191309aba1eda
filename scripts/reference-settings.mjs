// Renders the schema of config.json as a Markdown table: key, type, default, rule and meaning of each setting, and
// whether a running server applies a change.
import { z } from 'zod';
import { renderTable } from './generated-files.mjs';

export function renderSettings(schema) {
  const { properties } = z.toJSONSchema(schema, { io: 'input' });
  const rows = Object.entries(properties).flatMap(([name, node]) => rowsOf(schema, node, [name], node['x-applies']));
  return renderTable(['setting', 'type', 'default', 'rule', 'meaning', 'changes apply'], rows);
}

// A path has the names of members, `*` for each member of a record and 0 for each item of an array.
function rowsOf(schema, node, path, applies) {
  const row = [
    `\`${keyOf(path)}\``,
    typeOf(node),
    defaultOf(node),
    ruleOf(schema, node, path),
    node.description ?? '',
    applies,
  ];
  const members = Object.entries(node.properties ?? {}).map(([name, member]) => [[...path, name], member]);
  const nested =
    node.type === 'array' && node.items.type === 'object'
      ? Object.entries(node.items.properties).map(([name, member]) => [[...path, 0, name], member])
      : Object.entries(node.additionalProperties?.properties ?? {}).map(([name, member]) => [
          [...path, '*', name],
          member,
        ]);
  return [row, ...[...members, ...nested].flatMap(([at, member]) => rowsOf(schema, member, at, applies))];
}

function keyOf(path) {
  return path.map((part, index) => (part === 0 ? '[]' : index === 0 ? part : `.${part}`)).join('');
}

function typeOf(node) {
  if (node.anyOf) return node.anyOf.map(typeOf).join(' or ');
  if (node.enum) return 'string';
  return node.type === 'array' ? `array of ${node.items.type}s` : node.type;
}

// The members of an object have their own defaults. A default that is not a value is described.
function defaultOf(node) {
  if (node['x-when-empty'] !== undefined) return node['x-when-empty'];
  return node.default === undefined || node.properties ? '' : `\`${JSON.stringify(node.default)}\``;
}

function ruleOf(schema, node, path) {
  const value = (node.anyOf ?? [node]).find(({ type }) => type !== 'null');
  const rules = [numberRule(value), listRule(value.enum), listRule(value.propertyNames?.enum)];
  if (value.pattern !== undefined) rules.push(patternRule(schema, path));
  if (value.type === 'array') {
    rules.push(listRule(value.items.enum), value.uniqueItems ? 'each once' : '', value.minItems ? 'at least one' : '');
    if (value.items.pattern !== undefined) rules.push(patternRule(schema, [...path, 0]));
  }
  return rules.filter((rule) => rule !== '').join('; ');
}

const listRule = (values) => (values ? values.map((value) => `\`${value}\``).join(', ') : '');

function numberRule({ minimum, exclusiveMinimum, maximum }) {
  const rules = [];
  if (minimum !== undefined) rules.push(`at least ${minimum}`);
  if (exclusiveMinimum !== undefined) rules.push(`more than ${exclusiveMinimum}`);
  // An integer without a bound has the largest safe integer as its maximum.
  if (maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER) rules.push(`at most ${maximum}`);
  return rules.join(', ');
}

// The message of a pattern names the rule, but JSON Schema does not carry it: a blank, which no pattern matches, makes
// the schema report it.
function patternRule(schema, path) {
  const wrong = path.reduceRight((value, part) => (part === 0 ? [value] : { [part]: value }), ' ');
  const issue = schema.safeParse(wrong).error?.issues.find((each) => each.path.join() === path.join());
  if (!issue) throw new Error(`${keyOf(path)} has a pattern that matches a blank.`);
  return issue.message;
}
