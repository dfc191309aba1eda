// The OpenAPI document as a page for people: each route with its parameters, bodies, responses and examples, the
// webhooks and the error codes of runs. Plain HTML without scripts.

interface Operation {
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly schema?: Schema;
    readonly description?: string;
  }[];
  readonly requestBody?: Content;
  readonly responses?: Readonly<Record<string, Content & { readonly description?: string }>>;
}

interface Content {
  readonly content?: Readonly<Record<string, Media>>;
}

interface Media {
  readonly schema?: Schema;
  readonly examples?: Readonly<Record<string, { readonly summary?: string; readonly value?: unknown }>>;
}

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly 'x-enumDescriptions'?: Readonly<Record<string, string>>;
}

interface Document {
  readonly info?: { readonly title?: string; readonly version?: string; readonly description?: string };
  readonly tags?: readonly { readonly name: string; readonly description?: string }[];
  readonly servers?: readonly { readonly url: string; readonly description?: string }[];
  readonly paths?: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly webhooks?: Readonly<Record<string, { readonly post?: Operation }>>;
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> };
}

// Set by the library for responses without a description.
const DEFAULT_DESCRIPTION = 'Default Response';

const STYLE = [
  ':root{color-scheme:light dark}',
  'body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}',
  'h2{margin-top:2.5rem;border-bottom:1px solid #8886}',
  'details{border:1px solid #8886;border-radius:6px;margin:.5rem 0;padding:.4rem .8rem}',
  'summary{cursor:pointer}',
  'code,.m{font-family:ui-monospace,monospace;font-size:.92em}',
  '.m{display:inline-block;min-width:4.2em;font-weight:700}',
  'table{border-collapse:collapse;width:100%;margin:.4rem 0}',
  'td{border-top:1px solid #8883;padding:.2rem .6rem .2rem 0;vertical-align:top}',
  'td:first-child{white-space:nowrap}',
  '.dim{opacity:.75}',
  'pre{background:#8882;padding:.5rem;overflow-x:auto;white-space:pre-wrap;overflow-wrap:anywhere}',
].join('\n');

export function apiPage(openApi: object): string {
  const document = openApi as Document;
  const operations = Object.entries(document.paths ?? {}).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const parts = (document.tags ?? []).map(({ name, description = '' }) => {
    const tagged = operations.filter(({ operation }) => operation.tags?.includes(name));
    return (
      `<h2 id="${escape(name)}">${escape(name)} <span ` +
      `class="dim">${escape(description)}</span></h2>\n${tagged.map(describeOperation).join('\n')}`
    );
  });
  const schemas = Object.entries(document.components?.schemas ?? {}).map(
    ([name, schema]) =>
      `<details id="schema-${escape(name)}"><summary><b>${escape(name)}</b> <span ` +
      `class="dim">${escape(schema.description ?? '')}</span></summary>${membersOf(schema)}</details>`,
  );
  const webhooks = Object.entries(document.webhooks ?? {}).flatMap(([path, { post }]) =>
    post ? [describeOperation({ path, method: 'post', operation: post })] : [],
  );
  const servers = (document.servers ?? []).map(
    ({ url, description: text = '' }) => `<code>${escape(url)}</code> ${escape(text)}`,
  );
  const codes = document.components?.schemas?.['RunError']?.properties?.['code']?.['x-enumDescriptions'] ?? {};
  const { title = '', version = '', description = '' } = document.info ?? {};
  const head =
    '<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">' +
    `<title>${escape(title)} API</title><style>${STYLE}</style>`;
  return [
    `<!doctype html><html lang="en"><head>${head}</head><body><main>`,
    `<h1>${escape(title)} API <span class="dim">${escape(version)}</span></h1><p>${escape(description)}</p>`,
    '<p>Every request carries <code>Authorization: Bearer TOKEN</code>. ' +
      'For programs: <a href="/openapi.json">openapi.json</a>.</p>',
    `<p>Server: ${servers.join(', ')}</p>`,
    ...parts,
    '<h2 id="webhooks">webhooks <span class="dim">Requests that Parley sends to the URLs in its settings</span></h2>',
    ...webhooks,
    '<h2 id="run-errors">run errors <span class="dim">Why a run failed: the code of its error</span></h2>',
    `<table>${Object.entries(codes)
      .map(([code, meaning]) => row(code, '', meaning))
      .join('')}</table>`,
    `<h2 id="schemas">schemas</h2>${schemas.join('\n')}</main></body></html>`,
  ].join('\n');
}

function describeOperation({
  path,
  method,
  operation,
}: {
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
}): string {
  const body = operation.requestBody?.content?.['application/json'];
  const parameters = (operation.parameters ?? []).map((each) =>
    row(
      `${each.name}${each.required ? '' : '?'}`,
      typeOf(each.schema),
      `${each.in}${defaultOf(each.schema)} ${each.description ?? each.schema?.description ?? ''}`,
    ),
  );
  const answers = Object.entries(operation.responses ?? {}).map(([status, { content = {}, description }]) =>
    row(
      status,
      Object.values(content)
        .map(({ schema }) => typeOf(schema))
        .join(' ') || 'no body',
      Object.values(content)[0]?.schema?.description ??
        (description === DEFAULT_DESCRIPTION ? '' : (description ?? '')),
    ),
  );
  const examples = Object.entries(operation.responses ?? {}).flatMap(([status, { content = {} }]) =>
    Object.values(content).map((media) => examplesOf(media, status)),
  );
  const summary = `<span class="dim">${escape(operation.summary ?? '')}</span>`;
  return [
    `<details><summary><span class="m">${method.toUpperCase()}</span> `,
    `<code>${escape(path)}</code> ${summary}</summary>\n`,
    `<p class="dim">${escape(operation.description ?? '')}</p>`,
    parameters.length > 0 ? `<table>${parameters.join('')}</table>` : '',
    body?.schema ? `<p>body</p>${membersOf(body.schema)}${examplesOf(body, 'request')}` : '',
    `<p>responses</p><table>${answers.join('')}</table>${examples.join('')}</details>`,
  ].join('');
}

function examplesOf({ examples = {} }: Media, name: string): string {
  return Object.values(examples)
    .map(({ summary = '', value }) => {
      const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
      return (
        `<details><summary>example, ${escape(name)}: <span class="dim">${escape(summary)}</span></summary>` +
        `<pre>${escape(text)}</pre></details>`
      );
    })
    .join('');
}

function membersOf(schema: Schema): string {
  const { properties, required = [] } = schema;
  if (!properties) return `<p><code>${typeOf(schema)}</code></p>`;
  return `<table>${Object.entries(properties)
    .map(([name, member]) =>
      row(
        `${name}${required.includes(name) ? '' : '?'}`,
        typeOf(member),
        `${member.description ?? ''}${defaultOf(member)}`,
      ),
    )
    .join('')}</table>`;
}

// Returns HTML that is already escaped.
function typeOf(schema: Schema | undefined): string {
  if (!schema) return '';
  if (schema.$ref !== undefined) {
    const name = escape(schema.$ref.split('/').at(-1) ?? '');
    return `<a href="#schema-${name}">${name}</a>`;
  }
  if (schema.enum) return schema.enum.map((value) => escape(JSON.stringify(value))).join(' | ');
  if (schema.const !== undefined) return escape(JSON.stringify(schema.const));
  if (schema.anyOf)
    return schema.anyOf
      .map(typeOf)
      .filter((part, at, all) => all.indexOf(part) === at)
      .join(' | ');
  if (schema.items) return `${typeOf(schema.items)}[]`;
  return escape([schema.type ?? 'any'].flat().join(' | '));
}

function defaultOf(schema: Schema | undefined): string {
  return schema?.default === undefined ? '' : `, default ${JSON.stringify(schema.default)}`;
}

function row(name: string, type: string, text: string): string {
  return `<tr><td><code>${escape(name)}</code></td><td>${type}</td><td class="dim">${escape(text)}</td></tr>`;
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
