// A user with their own machine, all in one folder: a home whose settings point to a scripted model, a working folder,
// a data directory, and the real CLI as npm installs it. Nothing of this machine's own environment is in it.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startClaudeModel } from '../models/claude-model.js';
import { startCodexModel } from '../models/codex-model.js';
import { startGeminiModel } from '../models/gemini-model.js';
import type { ModelServer } from '../models/model-server.js';
import {
  CLAUDE_MODEL,
  CODEX_MODEL,
  GEMINI_MODEL,
  OPENCODE_MODEL,
  PERSON,
  type RealEngine,
} from '../models/offline-config.js';
import { startOpencodeModel } from '../models/opencode-model.js';

const START = {
  claude: startClaudeModel,
  codex: startCodexModel,
  gemini: startGeminiModel,
  opencode: startOpencodeModel,
};
export const MODEL_NAMES = {
  claude: CLAUDE_MODEL,
  codex: CODEX_MODEL,
  gemini: GEMINI_MODEL,
  opencode: OPENCODE_MODEL,
};
// The key of the scripted service of Codex; Parley knows the others.
export const PERSON_SETTINGS = { env_passthrough: ['SCRIPTED_API_KEY'] };

export interface Person {
  readonly engine: RealEngine;
  readonly root: string;
  readonly home: string;
  readonly cwd: string;
  // The data directory of Parley.
  readonly data: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly model: ModelServer;
}

// The script that npm links into its folder of programs; Parley finds the program behind it.
function npmProgram(engine: RealEngine): string {
  return fileURLToPath(new URL(`../../.cache/engines/node_modules/.bin/${engine}`, import.meta.url));
}

export async function meetPerson(
  engine: RealEngine,
  atEnd: (end: () => Promise<void> | void) => void,
  oddly = '',
): Promise<Person> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), `parley-real-${engine}-${oddly}`)));
  atEnd(() => rmSync(root, { recursive: true, force: true, maxRetries: 5 }));
  const model = await START[engine]();
  atEnd(() => model.close());
  const [home, cwd, data, tmp] = ['user', 'work', 'data', 'tmp'].map((name) => join(root, name)) as [
    string,
    string,
    string,
    string,
  ];
  for (const folder of [home, cwd, data, tmp]) mkdirSync(folder);
  const { files, env } = PERSON[engine](model.url);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), text);
  }
  const bin = { [`PARLEY_${engine.toUpperCase()}_BIN`]: npmProgram(engine) };
  return {
    engine,
    root,
    home,
    cwd,
    data,
    model,
    env: {
      PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
      LANG: 'C.UTF-8',
      HOME: home,
      TMPDIR: tmp,
      ...bin,
      ...env,
    },
  };
}
