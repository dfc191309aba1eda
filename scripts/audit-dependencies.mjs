// node scripts/audit-dependencies.mjs: checks package-lock.json without a network. Each package has a digest and an
// allowed licence, only the named ones run an install script, no registry is named, and no large package is installed
// twice.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const LICENCES = new Set([
  'MIT',
  'ISC',
  'BSD-2-Clause',
  'BSD-3-Clause',
  '0BSD',
  'Apache-2.0',
  'Python-2.0',
  'BlueOak-1.0.0',
]);
// Only for building and testing: none of it is delivered to users except dompurify, whose other licence is Apache.
const LICENCES_OF_TOOLS = new Set([
  ...LICENCES,
  'PSF-2.0',
  'MPL-2.0',
  '(MPL-2.0 OR Apache-2.0)',
  'CC0-1.0',
  'Unlicense',
]);
// By name, with the reason.
export const INSTALL_SCRIPTS = {
  '@photostructure/sqlite': 'looks for its prebuilt SQLite, and builds it where there is none; used on Node below 24',
};
// A second copy of these would be a mistake.
const ONCE = [
  'fastify',
  'zod',
  'ajv',
  'pg',
  'pino',
  '@modelcontextprotocol/server',
  '@photostructure/sqlite',
  'commander',
];
// Includes transitive dependencies. A higher number needs a reason.
const MOST_PACKAGES = 90;

export function auditDependencies(lock) {
  const all = Object.entries(lock.packages)
    .filter(([path]) => path !== '')
    .map(([path, entry]) =>
      Object.assign(entry, { name: path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length) }),
    );
  const used = all.filter(({ dev, devOptional }) => !dev && !devOptional);
  const problems = [];
  for (const { name, version, integrity, license, resolved, dev, devOptional, hasInstallScript } of all) {
    const what = `${name}@${version}`;
    if (!/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? '')) problems.push(`${what} has no SHA-512 digest`);
    if (resolved !== undefined)
      problems.push(`${what} names where it comes from: ${new URL(resolved, 'file:').protocol}`);
    if (!(dev || devOptional ? LICENCES_OF_TOOLS : LICENCES).has(license))
      problems.push(`${what} has the licence ${license}`);
    if (hasInstallScript && !dev && !devOptional && !Object.hasOwn(INSTALL_SCRIPTS, name))
      problems.push(`${what} runs a script when it is installed`);
  }
  for (const name of ONCE) {
    const versions = used.filter((each) => each.name === name).map(({ version }) => version);
    if (versions.length !== 1) problems.push(`${name} is there ${versions.length} times: ${versions.join(', ')}`);
  }
  for (const [name, range] of Object.entries({
    ...lock.packages[''].dependencies,
    ...lock.packages[''].devDependencies,
  }))
    if (!/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(range)) problems.push(`${name} is not pinned: ${range}`);
  if (used.length > MOST_PACKAGES)
    problems.push(`${used.length} packages come with Parley, more than ${MOST_PACKAGES}`);
  return {
    problems,
    used: used.length,
    direct: Object.keys(lock.packages[''].dependencies).length,
    tools: all.length - used.length,
  };
}

export function readLock() {
  return JSON.parse(readFileSync(fileURLToPath(new URL('../package-lock.json', import.meta.url)), 'utf8'));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { problems, used, direct, tools } = auditDependencies(readLock());
  const verdict =
    problems.length === 0 ? 'Nothing is wrong with them as far as the lock tells.' : `${problems.length} problems:`;
  console.log(`${direct} dependencies bring ${used} packages; ${tools} more to build and test. ${verdict}`);
  for (const problem of problems) console.log(`- ${problem}`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
