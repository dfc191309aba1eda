// The engine that stays, and what real servers of it (0.166.0) printed, a file each. Lines that the recorder had cut off are left out.
import { readdirSync, readFileSync } from 'node:fs';
import { codexAppServerCommand } from '../../src/engines/codex-app-server/command.js';
import { codexAppServerHandle } from '../../src/engines/codex-app-server/handle.js';
import { codexAppServerHome } from '../../src/engines/codex-app-server/home.js';
import { CODEX_APP_SERVER_PROFILE, createCodexAppServerReader } from '../../src/engines/codex-app-server/parser.js';
import { codexAppServerProbe } from '../../src/engines/codex-app-server/probe.js';
import type { Engine } from '../../src/engines/engine.js';

export const APP_SERVER: Engine = {
  name: 'codex-app-server',
  profile: CODEX_APP_SERVER_PROFILE,
  command: codexAppServerCommand,
  handle: codexAppServerHandle,
  probe: codexAppServerProbe,
  home: codexAppServerHome,
  asksByTool: false,
  createReader: createCodexAppServerReader,
};

const folder = new URL('../engines/codex-app-server/', import.meta.url);

export const RECORDINGS: readonly string[] = readdirSync(folder).toSorted();

export function loadRecording(name: string): Buffer {
  return readFileSync(new URL(name, folder));
}
