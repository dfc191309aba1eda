#!/usr/bin/env node
// The command's entry point. It is not built itself, so it can say what to do when the rest is not built yet.
import { existsSync } from 'node:fs';

const main = new URL('../dist/main.js', import.meta.url);
if (existsSync(main)) await import(main.href);
else {
  console.error('parley: not built yet: run `npm ci && npm run build` in the folder of the project');
  process.exitCode = 1;
}
