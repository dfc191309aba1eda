// The OpenAPI document read by independent tools: it is valid by the official schema of 3.1, and a client generated
// from it by a public generator compiles. The tools come from npm into .cache/, so this is not among the tests without
// network.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeAll, expect, test } from 'vitest';
import { installOpenapiTools, OPENAPI_TOOLS } from '../../scripts/install-openapi-tools.mjs';
import { createRoot } from '../support/orchestrated.js';
import { serve } from '../support/served.js';

const TOOLS = join(OPENAPI_TOOLS, 'node_modules');
let document: object;

beforeAll(async () => {
  installOpenapiTools();
  const served = await serve();
  document = (await (await served.fetch('/openapi.json')).json()) as object;
  await served.close();
}, 180_000);

function run(...args: string[]): { code: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  return { code: status, output: `${stdout}${stderr}` };
}

test('the document is valid by the official schema of OpenAPI 3.1', async () => {
  const { Validator } = (await import(
    pathToFileURL(join(TOOLS, '@seriousme', 'openapi-schema-validator', 'index.js')).href
  )) as {
    Validator: new () => { version: string; validate(document: object): Promise<{ valid: boolean; errors?: unknown }> };
  };
  const validator = new Validator();
  expect(await validator.validate(structuredClone(document))).toEqual({ valid: true });
  expect(validator.version).toBe('3.1');
});

test(
  'types of a client are generated from it, and a program that uses them compiles strictly',
  { timeout: 180_000 },
  () => {
    const folder = join(createRoot(), 'generated');
    mkdirSync(folder);
    writeFileSync(join(folder, 'openapi.json'), JSON.stringify(document));
    const generated = run(
      join(TOOLS, 'openapi-typescript', 'bin', 'cli.js'),
      join(folder, 'openapi.json'),
      '-o',
      join(folder, 'api.d.ts'),
    );
    expect(generated.code, generated.output).toBe(0);
    writeFileSync(join(folder, 'use.ts'), USE);
    const compile = () =>
      run(
        join(TOOLS, 'typescript', 'bin', 'tsc'),
        '--noEmit',
        '--strict',
        '--exactOptionalPropertyTypes',
        '--noUncheckedIndexedAccess',
        '--skipLibCheck',
        'false',
        '--target',
        'es2022',
        '--module',
        'nodenext',
        join(folder, 'use.ts'),
      );
    expect(compile()).toEqual({ code: 0, output: '' });
    // Proves that the client checks: a value that no run has is refused.
    writeFileSync(join(folder, 'use.ts'), USE.replace('run.run_id', 'run.nonsense'));
    expect(compile().output).toContain('nonsense');
  },
);

const USE = `import type { components, operations, paths } from './api.js';

type Run = components['schemas']['Run'];
type Create = operations['createRun']['requestBody']['content']['application/json'];
type Created = operations['createRun']['responses'][201]['content']['application/json'];
type Refused = components['schemas']['Error'];
type Inbox = paths['/v1/interactions']['get']['responses'][200]['content']['application/json'];
type Reply = operations['reply']['requestBody']['content']['application/json'];

export async function create(send: (path: keyof paths, body: unknown) => Promise<unknown>): Promise<string> {
  const wanted: Create = { engine: 'codex', prompt: 'go', execution_mode: 'interactive', labels: { team: 'a' } };
  const run = (await send('/v1/runs', wanted)) as Created;
  const same: Run = run;
  return same.status === 'waiting_user' ? (same.interaction?.question.prompt ?? '') : run.run_id;
}

export function answer(inbox: Inbox): Reply[] {
  return inbox.interactions.map((item) => ({
    interaction_id: item.interaction_id,
    response: item.question.options[0]?.value ?? 'yes',
    idempotency_key: item.run_id,
  }));
}

export function explain({ error }: Refused): string {
  return error.code + ': ' + error.message;
}
`;
