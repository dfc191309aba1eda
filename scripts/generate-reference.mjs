// Writes the generated parts of docs/reference: commands, settings, routes, events, errors and metrics. With --check it
// writes nothing and fails when a page differs.
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';
import { readJson, readText, renderTable, replacePart, writeOrCheck } from './generated-files.mjs';
import { renderCommands } from './reference-cli.mjs';
import { renderSettings } from './reference-settings.mjs';

const { module: sources } = await runnerImport(fileURLToPath(new URL('reference-sources.mjs', import.meta.url)));
const errors = await readJson('contract/errors.json');
const sticky = await readJson('contract/sticky.json');

const code = (text) => `\`${text}\``;

// A table of event types: required members first, then the optional ones with a question mark.
function renderEvents(schema) {
  const rows = schema.allOf.map((rule) => {
    const type = rule.then.properties.data.$ref.slice('#/$defs/'.length);
    const { description, properties, required } = schema.$defs[type];
    const members = Object.keys(properties).map((name) => code(required.includes(name) ? name : `${name}?`));
    return [code(type), members.join(' '), description];
  });
  return renderTable(['type', 'data', 'meaning'], rows);
}

const ofKind = (from, kind) => Object.entries(from).filter(([, entry]) => entry.kind === kind);
const yesNo = (value) => (value ? 'yes' : 'no');

function renderRunErrors() {
  const rows = ofKind(errors, 'run').map(([name, { retryable, meaning }]) => [code(name), yesNo(retryable), meaning]);
  const stickyRows = ofKind(sticky.errors, 'run').map(([name, { retryable, meaning }]) => [
    code(name),
    yesNo(retryable),
    `${meaning} Only with \`sessions.sticky\`.`,
  ]);
  return renderTable(['code', 'retryable', 'meaning'], [...rows, ...stickyRows]);
}

function renderDiagnostics() {
  return renderTable(
    ['code', 'meaning'],
    ofKind(errors, 'diagnostic').map(([name, { meaning }]) => [code(name), meaning]),
  );
}

// One section for each code, so that a code can be linked to.
function renderRequestErrors() {
  return ofKind(errors, 'request')
    .map(([name, { http_status: status, retryable, meaning, message, messages = {}, hint }]) => {
      // A message that is only a placeholder shows nothing.
      const texts = [message ?? '', ...Object.values(messages)].filter((text) => !/^(?:\{\w+\})?$/.test(text));
      return [
        `### ${name}`,
        `HTTP ${status}, retryable: ${yesNo(retryable)}. ${meaning}`,
        ...(texts.length === 0 ? [] : [texts.map((text) => `- ${code(text)}`).join('\n')]),
        ...(hint === undefined ? [] : [`Hint: ${hint}`]),
      ].join('\n\n');
    })
    .join('\n\n');
}

const SINCE = {
  now: 'present value',
  store: 'all turns, also of deleted runs',
  start: 'since the start of the process',
};

function renderMetrics() {
  const rows = Object.values(sources.METRICS).map(({ name, type, labels, since, help, buckets }) => [
    code(name),
    type,
    labels.map(code).join(' '),
    SINCE[since],
    `${help}.${buckets ? ` Buckets in seconds: ${buckets.join(', ')}.` : ''}`,
  ]);
  return renderTable(['metric', 'type', 'labels', 'covers', 'meaning'], rows);
}

function renderRoute({ method, path, operation: { summary, description, parameters = [] } }) {
  return [
    code(`${method.toUpperCase()} ${path}`),
    summary,
    parameters.flatMap(({ name, in: place }) => (place === 'query' ? [code(name)] : [])).join(' '),
    /the role (\w+)/.exec(description)?.[1] ?? 'none',
  ];
}

// A table of routes for each tag of the OpenAPI document.
function renderRoutes({ tags, paths }) {
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );
  return tags
    .map(({ name, description }) =>
      [
        `### ${name[0].toUpperCase()}${name.slice(1)} routes`,
        `${description}.`,
        renderTable(
          ['route', 'purpose', 'query', 'role'],
          routes.filter(({ operation }) => operation.tags.includes(name)).map(renderRoute),
        ),
      ].join('\n\n'),
    )
    .join('\n\n');
}

const parts = {
  'cli.md': { commands: renderCommands(sources.program) },
  'settings.md': { settings: renderSettings(sources.settingsSchema) },
  'http.md': { routes: renderRoutes(sources.openApi) },
  'events-rasp.md': { types: renderEvents(await readJson('contract/rasp.schema.json')) },
  'events-fcmp.md': { types: renderEvents(await readJson('contract/fcmp.schema.json')) },
  'errors.md': { requests: renderRequestErrors(), runs: renderRunErrors(), diagnostics: renderDiagnostics() },
  'metrics.md': { metrics: renderMetrics() },
};
const pages = new Map();
for (const [name, contents] of Object.entries(parts)) {
  const path = `docs/reference/${name}`;
  let page = await readText(path);
  for (const [part, content] of Object.entries(contents)) page = replacePart(page, part, `\n${content}\n`);
  pages.set(path, page);
}
await writeOrCheck(pages);
