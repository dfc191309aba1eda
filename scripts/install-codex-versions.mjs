// Installs other versions of Codex than the tested one, from npm into .cache/codex/<version>/, for tests of the
// differences between them. A new folder is filled under another name and renamed when it is complete, so an
// interrupted install is repeated. When imported, it only returns the paths of the programs.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

// An older version that is still in use, and the newest on npm when this was written.
export const CODEX_VERSIONS = ['0.150.0', '0.169.0'];

const cache = fileURLToPath(new URL('../.cache/codex', import.meta.url));

// The script that npm links, from which Parley finds the program itself.
export function codexOf(version) {
  return join(cache, version, 'node_modules', '.bin', 'codex');
}

function install(version) {
  if (existsSync(codexOf(version))) return;
  mkdirSync(cache, { recursive: true });
  const partial = mkdtempSync(join(cache, `partial-${process.pid}-`));
  try {
    writeFileSync(
      join(partial, 'package.json'),
      JSON.stringify({ private: true, dependencies: { '@openai/codex': version } }),
    );
    const args = ['install', '--ignore-scripts', '--no-package-lock', '--no-audit', '--no-fund', '--loglevel=error'];
    const { status, error } = spawnSync('npm', args, { cwd: partial, stdio: ['ignore', 'inherit', 'inherit'] });
    if (status !== 0) throw new Error(`npm ${args.join(' ')} failed for Codex ${version}`, { cause: error });
    // Another install may have been faster.
    if (!existsSync(codexOf(version))) renameSync(partial, join(cache, version));
  } finally {
    rmSync(partial, { recursive: true, force: true, maxRetries: 3 });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const version of CODEX_VERSIONS) {
    install(version);
    console.log(`codex ${version}: .cache/codex/${version}`);
  }
}
