// The sources of docs/reference as data: the command table, the settings, the metrics and the OpenAPI document.
// scripts/generate-reference.mjs loads this module with Vite, which reads TypeScript, so no build is needed.
import Fastify from 'fastify';
import { buildProgram } from '../src/cli/build-program.ts';
import { BY_ZOD } from '../src/service/api/compilers.ts';
import { METRICS } from '../src/service/figures/metric-list.ts';
import { addRoutes } from '../src/service/routes/add-routes.ts';
import { settingsSchema } from '../src/settings/settings.ts';

export { METRICS, settingsSchema };

// No command runs, so the program only needs an output.
const output = { write: () => true };
export const program = buildProgram({ stdout: output, stderr: output }, { printErrors: false, act: async () => {} });

// Vite closes its module runner after this import, and the document is loaded on request: read it here.
export const openApi = await readOpenApi();

async function readOpenApi() {
  const app = Fastify({ schemaController: BY_ZOD });
  await addRoutes({ app, version: '', consoleDir: null, orchestrator: {} });
  const document = (await app.inject('/openapi.json')).json();
  await app.close();
  return document;
}
