// The built server as a separate process, as a person starts it: `parley serve` on a data directory.
import { createClient, type ParleyClient } from '../../src/client/client.js';
import { readOperatorToken } from '../../src/service/access/operator-token.js';
import { start, type CallOptions, type Running, type Site } from './command.js';

export interface ServerProcess extends Running {
  readonly url: string;
  readonly port: number;
  readonly token: string;
  readonly client: ParleyClient;
}

export async function startServer(
  site: Site,
  args: readonly string[] = ['--port', '0'],
  options: CallOptions = {},
): Promise<ServerProcess> {
  const running = start(site, ['serve', '--json', '--log-level', 'warn', ...args], options);
  let output = '';
  running.child.stdout.on('data', (text: string) => (output += text));
  await running.waitFor('"type":"serving"');
  const { url } = JSON.parse(output.split('\n')[0] ?? '') as { url: string };
  const token = tokenOf({ ...site.env, ...options.env }, site.data);
  return { ...running, url, port: Number(new URL(url).port), token, client: createClient({ url, token }) };
}

// The operator's token, as a command on the same data directory finds it.
function tokenOf({ PARLEY_TOKEN: preset }: Readonly<Record<string, string | undefined>>, data: string): string {
  return preset || readOperatorToken(data);
}
