// Every text of the console is in its catalogue, and every text of the catalogue is used.
import { readdirSync, readFileSync } from 'node:fs';
import { parseSync } from 'oxc-parser';
import { expect, test } from 'vitest';
import { en } from '../../console/src/language/en.js';

interface Node {
  readonly type: string;
  readonly start: number;
  readonly [member: string]: unknown;
}

const FOLDER = new URL('../../console/src/', import.meta.url);
const FILES = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name) && !name.startsWith('language'))
  .toSorted();

// Attributes whose values no person reads.
const TECHNICAL = new Set(
  (
    'class id type role for href to key name value tone page style scope autocomplete inputMode d orient viewBox ' +
    'preserveAspectRatio text-anchor marker-end aria-live aria-labelledby aria-describedby aria-controls ' +
    'aria-current aria-hidden aria-expanded'
  ).split(' '),
);
// Keys and commands are the same in all languages.
const UNTRANSLATED = new Set(['kbd', 'code']);
// Outside JSX, text for people has several words or begins with a capital letter.
const WORDS = /\p{L}{2,}[,.:;…]? \p{L}{2,}|^\p{Lu}\p{Ll}+\P{L}*$/u;
// Keys, browser interfaces, link relations, HTML and CSS selectors.
const NO_TEXT = /^(?:Escape|Tab|Enter|Arrow|Notification|noopener noreferrer nofollow|main h1)$|^<| input, #field-/;

function isTechnical(attribute: string): boolean {
  return TECHNICAL.has(attribute) || attribute.startsWith('data-');
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';
}

function childrenOf(node: Node): Node[] {
  return Object.values(node).flatMap((value) => (Array.isArray(value) ? value : [value]).filter(isNode));
}

function parse(file: string): Node {
  const path = new URL(file, FOLDER);
  const { program, errors } = parseSync(file, readFileSync(path, 'utf8'));
  expect(errors).toEqual([]);
  return program as unknown as Node;
}

function textOf(node: Node): string | null {
  if (node.type === 'JSXText' || node.type === 'Literal')
    return typeof node['value'] === 'string' ? node['value'] : null;
  return node.type === 'TemplateElement' ? (node['value'] as { cooked: string }).cooked : null;
}

const nameOf = (node: unknown): string => String((node as Node | undefined)?.['name'] ?? '');

// Strings that a person could see. `place`: where the node is. In JSX every letter counts, elsewhere only sentences.
function* visibleTexts(node: Node, place: 'jsx' | 'code'): Generator<string> {
  const text = textOf(node);
  if (text !== null) {
    if (place === 'jsx' ? /\p{L}/u.test(text) : WORDS.test(text) && !NO_TEXT.test(text)) yield text.trim();
    return;
  }
  switch (node.type) {
    case 'ImportDeclaration':
    case 'TSTypeAliasDeclaration':
    case 'TSInterfaceDeclaration':
    case 'TSTypeAnnotation':
      return;
    case 'JSXElement': {
      const opening = node['openingElement'] as Node;
      yield* visibleTexts(opening, 'code');
      if (UNTRANSLATED.has(nameOf(opening['name']))) return;
      for (const child of node['children'] as Node[]) yield* visibleTexts(child, 'jsx');
      return;
    }
    case 'JSXAttribute':
      if (isNode(node['value']) && !isTechnical(nameOf(node['name']))) yield* visibleTexts(node['value'], 'jsx');
      return;
    // Only the values of these expressions are shown, not their conditions and arguments.
    case 'ConditionalExpression':
      yield* visibleTexts(node['test'] as Node, 'code');
      yield* visibleTexts(node['consequent'] as Node, place);
      yield* visibleTexts(node['alternate'] as Node, place);
      return;
    case 'LogicalExpression':
      yield* visibleTexts(node['left'] as Node, 'code');
      yield* visibleTexts(node['right'] as Node, place);
      return;
    case 'JSXExpressionContainer':
    case 'TemplateLiteral':
    case 'JSXFragment':
      for (const child of childrenOf(node)) yield* visibleTexts(child, place);
      return;
    case 'BinaryExpression':
      for (const child of childrenOf(node)) yield* visibleTexts(child, node['operator'] === '+' ? place : 'code');
      return;
    default:
      for (const child of childrenOf(node)) yield* visibleTexts(child, 'code');
  }
}

function textsIn(source: string): string[] {
  return [...visibleTexts(parseSync('x.tsx', source).program as unknown as Node, 'code')];
}

test('the search finds text in JSX, attributes and messages, and nothing else', () => {
  expect(textsIn('<p class="a">Hello <b title="x y">{is ? "one" : `two ${n}`}</b></p>')).toEqual([
    'Hello',
    'x y',
    'one',
    'two',
  ]);
  expect(textsIn('setProblem("This is wrong.")')).toEqual(['This is wrong.']);
  expect(textsIn('<p aria-label={n > 0 ? t.a : "b"}>{state === "open" && "c"}</p>')).toEqual(['b', 'c']);
  expect(textsIn('<p id="x"><kbd>j</kbd> {t.a("j")} {x["name"]} {list.map(() => <i>d</i>)}</p>')).toEqual(['d']);
  expect(textsIn('import a from "two words"; type A = "two words"; f("a"); <p>12 · ✓</p>')).toEqual([]);
});

test('every text that a person sees is in the catalogue', () => {
  expect(FILES.length).toBeGreaterThan(50);
  const outside = FILES.flatMap((file) => Array.from(visibleTexts(parse(file), 'code'), (text) => `${file}: ${text}`));
  expect(outside).toEqual([]);
});

// The members of `t` that the sources use: a path for t.a.b, with a * for keys that are chosen at run time.
function* usedPaths(node: Node): Generator<string> {
  const path = pathOf(node);
  if (path !== null) return yield path;
  for (const child of childrenOf(node)) yield* usedPaths(child);
}

function pathOf(node: Node): string | null {
  if (node.type === 'Identifier') return node['name'] === 't' ? '' : null;
  if (node.type !== 'MemberExpression') return null;
  const object = pathOf(node['object'] as Node);
  return object === null ? null : `${object}.${node['computed'] ? '*' : nameOf(node['property'])}`;
}

function* leaves(value: object, path = ''): Generator<string> {
  for (const [name, member] of Object.entries(value)) {
    if (typeof member === 'object' && member !== null) yield* leaves(member as object, `${path}.${name}`);
    else yield `${path}.${name}`;
  }
}

test('every text of the catalogue is used', () => {
  const used = FILES.flatMap((file) => Array.from(usedPaths(parse(file)), (path) => path.split('.')));
  // A table that is used as a whole, or by a key of run time, uses all its members.
  const isUsed = (leaf: string[]): boolean =>
    used.some((path) => path.length > 1 && path.every((name, index) => name === leaf[index] || name === '*'));
  const unused = [...leaves(en)].filter((leaf) => !isUsed(leaf.split('.')));
  expect(unused).toEqual([]);
});

test('no text of the catalogue is empty', () => {
  for (const leaf of leaves(en)) {
    const text = leaf
      .split('.')
      .slice(1)
      .reduce<unknown>((value, name) => (value as Record<string, unknown>)[name], en);
    if (typeof text === 'string') expect(text.trim(), leaf).not.toBe('');
  }
});
