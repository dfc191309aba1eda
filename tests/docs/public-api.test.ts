// The published modules explain themselves in an editor: every exported declaration and every member of it has JSDoc,
// because `//` does not reach the .d.ts files. The types narrow as documented.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseSync } from 'oxc-parser';
import { expect, expectTypeOf, test } from 'vitest';
import {
  answerTo,
  type Answer,
  type AnswerReply,
  type ApprovalAction,
  type ApprovalQuestion,
  type ApprovalResponse,
  type CommandAction,
  type Question,
  type Reply,
} from '../../src/client/index.js';

// Generated from Codex, which documents none of its types.
const GENERATED = new Set(['src/app-server/protocol.ts']);

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [member: string]: unknown;
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value;
}

function parse(path: string): { readonly source: string; readonly body: readonly Node[]; readonly docEnds: number[] } {
  const source = readFileSync(path, 'utf8');
  const { program, comments, errors } = parseSync(path, source);
  expect(errors, path).toEqual([]);
  const docEnds = comments.filter(({ type, value }) => type === 'Block' && value.startsWith('*')).map(({ end }) => end);
  return { source, body: program.body as unknown as Node[], docEnds };
}

function nameOf(node: Node, source: string): string {
  const named = (node['key'] ?? node['id'] ?? node) as Node;
  return source.slice(named.start, named.end).split('\n')[0] ?? '';
}

// Parameters and the inside of functions are documented by their function.
function membersOf(declaration: Node): Node[] {
  if (declaration.type === 'FunctionDeclaration') return [];
  if (declaration.type === 'ClassDeclaration')
    return ((declaration['body'] as Node)['body'] as Node[]).filter(
      ({ key, accessibility }) => accessibility !== 'private' && !(isNode(key) && key.type.startsWith('Private')),
    );
  if (declaration.type === 'TSInterfaceDeclaration') return (declaration['body'] as Node)['body'] as Node[];
  const annotation = declaration['typeAnnotation'];
  if (!isNode(annotation)) return [];
  const parts = [annotation, ...((annotation['types'] as Node[] | undefined) ?? [])];
  return parts.filter(({ type }) => type === 'TSTypeLiteral').flatMap((part) => part['members'] as Node[]);
}

// Every exported declaration, with the interfaces of the same file that it extends.
function undocumented(path: string, names: ReadonlySet<string> | null): string[] {
  if (GENERATED.has(path)) return [];
  const { source, body, docEnds } = parse(path);
  const isDocumented = ({ start }: Node): boolean =>
    docEnds.some((end) => end <= start && source.slice(end, start).trim() === '');
  const missing: string[] = [];
  const seen = new Set<string>();
  const bases = new Map(
    body.filter(({ type }) => type === 'TSInterfaceDeclaration').map((node) => [nameOf(node, source), node]),
  );
  for (const statement of body) {
    const from = (statement['source'] as { readonly value: string } | null | undefined)?.value;
    if (from !== undefined && statement.type.startsWith('Export')) {
      const specifiers = (statement['specifiers'] as Node[] | undefined)?.filter(
        ({ exported }) => !names || names.has(nameOf(exported as Node, source)),
      );
      const wanted = specifiers && new Set(specifiers.map(({ local }) => nameOf(local as Node, source)));
      for (const { exported } of specifiers ?? []) seen.add(nameOf(exported as Node, source));
      if (wanted?.size !== 0)
        missing.push(...undocumented(join(dirname(path), from.replace(/\.js$/, '.ts')), wanted ?? null));
    }
    const declaration = statement['declaration'];
    if (statement.type !== 'ExportNamedDeclaration' || !isNode(declaration)) continue;
    const name = nameOf(declaration, source);
    if (names && !names.has(name)) continue;
    seen.add(name);
    if (!isDocumented(statement)) missing.push(`${path}: ${name}`);
    const extended = ((declaration['extends'] as Node[] | undefined) ?? []).flatMap(({ expression }) => {
      const base = bases.get(nameOf(expression as Node, source));
      return base ? [base] : [];
    });
    for (const member of [declaration, ...extended].flatMap(membersOf))
      if (!isDocumented(member)) missing.push(`${path}: ${name}.${nameOf(member, source)}`);
  }
  for (const name of names ?? []) if (!seen.has(name)) missing.push(`${path}: ${name} was not seen`);
  return missing;
}

test.each(['src/client/index.ts', 'src/app-server/index.ts'])('every exported member of %s has JSDoc', (path) => {
  expect(existsSync(path)).toBe(true);
  expect(undocumented(path, null)).toEqual([]);
});

test('the check for JSDoc notices missing comments', () => {
  // An internal file with comments for its readers only.
  expect(undocumented('src/service/service.ts', null).length).toBeGreaterThan(0);
});

// Checked by the compiler.
function read(question: Question, action: ApprovalAction, answer: Answer, reply: Reply): void {
  if (question.kind === 'approval') expectTypeOf(question).toEqualTypeOf<ApprovalQuestion>();
  if (question.kind === 'fill_fields') expectTypeOf(question.fields?.[0]?.id).toEqualTypeOf<string | undefined>();
  if (action.kind === 'command') expectTypeOf(action).toEqualTypeOf<CommandAction>();
  if (answer.finish) expectTypeOf(answer.finish).toEqualTypeOf<true>();
  if (!reply.finish) expectTypeOf(reply).toEqualTypeOf<AnswerReply>();
}

test('questions, actions and answers narrow by their discriminant', () => {
  expect(read).toBeTypeOf('function');
  expectTypeOf<ApprovalResponse['decision']>().toEqualTypeOf<
    'approve' | 'approve_for_session' | 'decline' | 'cancel'
  >();
});

test('answerTo builds the reply of a question and accepts only decisions for an approval', () => {
  const approval: ApprovalQuestion = { kind: 'approval', prompt: 'Run it?', options: [] };
  expect(answerTo('int_1', approval, { decision: 'decline', note: 'not now' })).toEqual({
    interaction_id: 'int_1',
    response: { decision: 'decline', note: 'not now' },
  });
  // @ts-expect-error: a text does not decide about an approval.
  answerTo('int_1', approval, 'yes');
});
