import { expect, test } from 'vitest';
import { codexHome } from '../../src/engines/codex/home.js';
import { codexProbe } from '../../src/engines/codex/probe.js';
import { buildHandle } from '../../src/engines/registry.js';
import { APP_SERVER } from '../support/codex-app-server.js';

test('the server starts alike for new and old conversations, and gets the rest later', () => {
  const spec = {
    program: ['/opt/node', '/opt/codex.js'],
    cwd: '/w',
    prompt: 'secret',
    permission: 'full',
    model: 'm',
    newSessionId: 'x',
  } as const;
  const handle = buildHandle(APP_SERVER, '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c', { cwd: '/w', home: null, attempt: 1 });
  const command = {
    argv: [
      '/opt/node',
      '/opt/codex.js',
      'app-server',
      '-c',
      'features.unbounded_connection_retries=false',
      '-c',
      'check_for_update_on_startup=false',
    ],
    cwd: '/w',
    stdin: null,
    env: {},
  };
  expect(APP_SERVER.command.buildStart(spec)).toEqual(command);
  expect(APP_SERVER.command.buildResume(spec, handle)).toEqual(command);
});

test('a thread is named by a UUID and by nothing else', () => {
  expect(APP_SERVER.handle.source).toBe('thread/start');
  expect(APP_SERVER.handle.accepts('01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c')).toBe(true);
  for (const id of ['', 'last', '--help', '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c\n'])
    expect(APP_SERVER.handle.accepts(id)).toBe(false);
});

test('it is the same program, in the same home, but no file is written for a turn', () => {
  const { turnFile, ...home } = codexHome;
  expect(turnFile).toBeDefined();
  expect(APP_SERVER.home).toEqual(home);
  expect('turnFile' in APP_SERVER.home).toBe(false);
  // A configured path of Codex applies to it as well.
  expect(APP_SERVER.probe).toEqual({ ...codexProbe, programOf: 'codex' });
});
