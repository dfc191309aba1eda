// Packs the compiled modules of dist/ and their dependencies into dist/program, which bin/parley.js starts: Node loads
// a few large files faster than hundreds of small ones. Nothing is minified, so stack traces stay readable. What a
// command loads on demand is in files of its own.
import { build } from 'esbuild';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');
const target = join(dist, 'program');
// Stay packages: with native code, or loaded only by few commands.
const EXTERNAL = ['@photostructure/sqlite', 'pg', 'string-width'];
// Modules that are loaded on demand, together with the others of their group. The modules that several groups need are
// split into files by who needs them, so fewer groups are fewer files. The first match counts; without one, a module is
// loaded alone.
const GROUPS = {
  postgres: /\/postgres\//,
  chinese: /zh-cn/,
  administration: /^cli\/administration\//,
  work: /^cli\/(?:conversation\/(?:worker|manage)|open-writer)\.js$/,
  proof: /^cli\/(?:reading\/(?:audit|parse)|serving\/verify-child)\.js$/,
  reading: /^(?:cli\/(?:reading\/|serving\/(?:open|link)\.)|terminal\/)/,
  conversation: /^cli\/conversation\//,
};
// Packages in CommonJS load modules of Node with require. Only the file with esbuild's helper for that needs it.
const REQUIRE =
  `import { createRequire as createBundleRequire } from 'node:module'; ` +
  'const require = createBundleRequire(import.meta.url); ';

removeStale();
const files = readdirSync(dist, { recursive: true }).filter((file) => !file.startsWith('program'));
const threads = files.filter((file) => file.endsWith('.mjs')).map((file) => join(dist, file));
const groups = await findGroups();

const outputs = await Promise.all([
  pack({ in: 'dist/main.js', out: 'main' }, { splitting: true, plugins: [{ name: 'groups', setup: loadInGroups }] }),
  // Programs and threads of their own, in one file each. A thread is started from a file beside the one that starts it.
  pack({ in: 'dist/rehearsal/main.js', out: 'rehearsal/main' }),
  ...threads.map((file) => pack({ in: file, out: basename(file, '.mjs') }, { outExtension: { '.js': '.mjs' } })),
]);
const written = new Set(outputs.flatMap((output) => output.files));
const packages = new Set([...outputs.flatMap((output) => output.packages), ...(await findConsolePackages())]);
writeFileSync(join(target, 'LICENSES.txt'), listLicences([...packages].toSorted()));
written.add('LICENSES.txt');
removeOlder();

async function pack(entry, options = {}) {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    outdir: target,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    external: EXTERNAL,
    metafile: true,
    sourcemap: 'linked',
    sourcesContent: false,
    write: false,
    logLevel: 'warning',
    ...options,
  });
  return { files: outputFiles.map(write), packages: Object.keys(metafile.inputs).flatMap(packageOf) };
}

// The compiler leaves what it made of a source that was renamed or removed: it would be packed and published.
function removeStale() {
  for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
    const path = relative(dist, join(entry.parentPath, entry.name));
    if (!entry.isFile() || path.startsWith('program') || path.startsWith('.')) continue;
    const source = join(root, 'src', path.replace(/(\.d\.m?ts|\.js|\.mjs)(\.map)?$/, ''));
    if (!['.ts', '.mjs', '.mts'].some((end) => existsSync(source + end))) rmSync(join(dist, path));
  }
}

// The packages of the console, which Vite builds.
async function findConsolePackages() {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: ['console/src/main.tsx'],
    outdir: target,
    bundle: true,
    write: false,
    metafile: true,
    jsx: 'automatic',
    jsxImportSource: 'preact',
    loader: { '.svg': 'empty', '.woff2': 'empty' },
  });
  return Object.keys(metafile.inputs).flatMap(packageOf);
}

// The groups with the modules in them.
async function findGroups() {
  const members = new Map(Object.keys(GROUPS).map((name) => [name, new Set()]));
  for (const file of files.filter((name) => name.endsWith('.js'))) {
    const text = readFileSync(join(dist, file), 'utf8');
    for (const [, path] of text.matchAll(/\bimport\('(\.[^']+)'\)/g)) {
      const module = join(dist, dirname(file), path);
      members.get(groupOf(module))?.add(module);
    }
  }
  for (const [name, modules] of members) await checkExports(name, [...modules]);
  return members;
}

function groupOf(module) {
  const path = relative(dist, module);
  return Object.keys(GROUPS).find((name) => GROUPS[name].test(path));
}

// `export *` leaves out a name that two modules export.
async function checkExports(group, entryPoints) {
  const { metafile } = await build({ entryPoints, outdir: target, format: 'esm', metafile: true, write: false });
  const names = Object.values(metafile.outputs).flatMap((output) => output.exports);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`two modules of the group "${group}" export ${twice}`);
}

function loadInGroups({ onResolve, onLoad }) {
  onResolve({ filter: /^\./ }, ({ path, kind, resolveDir }) => {
    const group = kind === 'dynamic-import' ? groupOf(join(resolveDir, path)) : undefined;
    return group === undefined ? undefined : { path: group, namespace: 'group' };
  });
  onLoad({ filter: /./, namespace: 'group' }, ({ path }) => ({
    contents: [...groups.get(path)].map((module) => `export * from ${JSON.stringify(module)};`).join('\n'),
    resolveDir: dist,
  }));
}

// Leaves a file alone that did not change: Node keeps what it has compiled of it.
function write({ path, text }) {
  const isHelper = text.includes('typeof require') && path.endsWith('js');
  // On the first line, so that the source map stays correct for all others.
  const content = isHelper ? REQUIRE + text : text;
  if (!existsSync(path) || readFileSync(path, 'utf8') !== content) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }
  return relative(target, path);
}

function packageOf(input) {
  const [folder] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input) ?? [];
  return folder === undefined ? [] : [folder];
}

// Their licences require that copies carry these texts.
function listLicences(folders) {
  const parts = folders.map((folder) => {
    const { name, version, license, author } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
    const file = readdirSync(join(root, folder)).find((entry) => /^licen[sc]e/i.test(entry));
    const by = typeof author === 'object' ? author.name : author;
    const text = file ? readFileSync(join(root, folder, file), 'utf8').trim() : `Copyright (c) ${by}`;
    return `${name} ${version} (${license})\n\n${text}\n`;
  });
  return parts.join(`\n${'-'.repeat(80)}\n\n`);
}

// Names contain a hash of the content: a server that still runs must not load a file of another build.
function removeOlder() {
  for (const entry of readdirSync(target, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const name = relative(target, path);
    if (entry.isFile() && !name.startsWith('console/') && !written.has(name)) rmSync(path);
  }
}
