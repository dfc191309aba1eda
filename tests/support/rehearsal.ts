// Runs the built rehearsal program: a turn of a session in its own home.
import { spawn } from 'node:child_process';
import { once } from 'node:events';

export const REHEARSAL = [process.execPath, new URL('../../dist/rehearsal/main.js', import.meta.url).pathname] as const;

export interface RehearsalTurn {
  readonly exit: { readonly code: number | null; readonly signal: string | null };
  readonly stdout: Buffer;
  readonly stderr: Buffer;
}

export async function playRehearsal(
  home: string,
  args: readonly string[],
  prompt = '',
  env: Readonly<Record<string, string>> = {},
): Promise<RehearsalTurn> {
  const [node, script] = REHEARSAL;
  const child = spawn(node, [script, ...args], { cwd: home, env: { HOME: home, ...env } });
  // Who ends before it has read everything is no failure of the test.
  child.stdin.on('error', () => {});
  child.stdin.end(prompt);
  const output = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  child.stdout.on('data', (chunk: Buffer) => output.stdout.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => output.stderr.push(chunk));
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  return { exit: { code, signal }, stdout: Buffer.concat(output.stdout), stderr: Buffer.concat(output.stderr) };
}
