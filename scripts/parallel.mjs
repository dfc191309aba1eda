// node scripts/parallel.mjs SCRIPT...: runs npm scripts at the same time. The last one prints as it goes, the others
// when they have ended. Fails if one of them fails.
import { spawn } from 'node:child_process';
import { once } from 'node:events';

const scripts = process.argv.slice(2);

const outcomes = await Promise.all(
  scripts.map(async (script, index) => {
    const isLast = index === scripts.length - 1;
    const child = spawn('npm', ['run', '--silent', script], {
      stdio: ['ignore', ...(isLast ? ['inherit', 'inherit'] : ['pipe', 'pipe'])],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text) => (output += text));
    const [code, signal] = await once(child, 'close');
    if (code !== 0) output += `${script} failed with ${signal ?? `code ${code}`}\n`;
    process.stdout.write(output);
    return code === 0;
  }),
);
process.exitCode = outcomes.includes(false) ? 1 : 0;
