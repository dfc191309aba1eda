// Installs independent readers of our OpenAPI document, in exactly these versions, from npm into .cache/openapi/: a
// validator with the official schema, a generator of clients and a compiler. None of them is a dependency of the
// package.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PACKAGES = {
  '@seriousme/openapi-schema-validator': '2.11.0',
  'openapi-typescript': '7.13.0',
  typescript: '5.9.3',
};

export const OPENAPI_TOOLS = join(fileURLToPath(new URL('..', import.meta.url)), '.cache', 'openapi');

function isWhole(folder) {
  return Object.entries(PACKAGES).every(([name, version]) => {
    const manifest = join(folder, 'node_modules', name, 'package.json');
    return existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).version === version;
  });
}

// Filled under another name and renamed when it is complete: an interrupted install is repeated.
export function installOpenapiTools() {
  if (isWhole(OPENAPI_TOOLS)) return;
  mkdirSync(dirname(OPENAPI_TOOLS), { recursive: true });
  const partial = mkdtempSync(`${OPENAPI_TOOLS}.partial-`);
  try {
    writeFileSync(
      join(partial, 'package.json'),
      JSON.stringify({ private: true, type: 'module', dependencies: PACKAGES }, null, 2),
    );
    const args = ['install', '--ignore-scripts', '--no-package-lock', '--no-audit', '--no-fund', '--loglevel=error'];
    const { status, error } = spawnSync('npm', args, { cwd: partial, stdio: ['ignore', 'inherit', 'inherit'] });
    if (status !== 0 || !isWhole(partial)) throw new Error(`npm ${args.join(' ')} failed`, { cause: error });
    rmSync(OPENAPI_TOOLS, { recursive: true, force: true });
    renameSync(partial, OPENAPI_TOOLS);
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) installOpenapiTools();
