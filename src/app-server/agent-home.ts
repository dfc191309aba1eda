// Opens the home of an instance, and reports its errors as errors of this library.
import { CodexHome, type CodexHomeOptions } from '../machine/homes/codex-home.js';
import { HomeError } from '../machine/homes/home-error.js';
import { AppServerError } from './app-server-error.js';

export type AgentHome = Pick<CodexHome, 'path' | 'temporary' | 'admit'>;

export async function openAgentHome(path: string, options: CodexHomeOptions): Promise<AgentHome> {
  const home = await CodexHome.open(path, options).catch(rethrow);
  return {
    path: home.path,
    temporary: home.temporary,
    admit: (cwd) => {
      try {
        home.admit(cwd);
      } catch (error) {
        rethrow(error);
      }
    },
  };
}

function rethrow(error: unknown): never {
  throw error instanceof HomeError ? new AppServerError(error.code, error.message, { cause: error }) : error;
}
