#!/usr/bin/env node
// The command's entry point. It is not built itself, so it can say what to do when the rest is not built yet.
import { existsSync, mkdirSync } from 'node:fs';
import module from 'node:module';
import { fileURLToPath } from 'node:url';

const main = new URL('../dist/program/main.js', import.meta.url);
if (existsSync(main)) {
  keepCompiled(fileURLToPath(new URL('../.cache/compiled', import.meta.url)));
  await import(main.href);
} else {
  console.error('parley: not built yet: run `npm ci && npm run build` in the folder of the project');
  process.exitCode = 1;
}

// What Node has compiled is kept for the next start, where it can (from 22.8 on). What is kept is run, so it lies
// beside the program: who can write there could change that as well, which is not true of the temporary directory that
// Node would take.
function keepCompiled(folder) {
  if (!module.enableCompileCache) return;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch {
    // The program belongs to somebody else: it starts as well without.
    return;
  }
  module.enableCompileCache(folder);
}
