import { describe, expect, test } from 'vitest';
import type { EngineCommand, Permission, TurnSpec } from '../../src/engines/engine.js';
import { buildCommand, buildHandle, ENGINES, findEngine } from '../../src/engines/registry.js';
import type { RequestError } from '../../src/run/request-error.js';

const SESSIONS: Readonly<Record<string, string>> = {
  claude: '6f1de0c2-9d52-4a8e-b1c1-5f4f2f0d1a11',
  codex: '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c',
  'codex-app-server': '01a1e067-7713-74e1-a108-53aba51f6e9e',
  gemini: '28c926d4-640b-4f49-8c8a-017f79622861',
  iflow: 'session-e06bbd16-086a-47b2-8903-c9c250e3c2f7',
  opencode: 'ses_e1f9251edffeNx39HucHIZ5udw',
  rehearsal: '5ce7e000-0000-4000-8000-000000000001',
};
const NEW_ID = 'b7a1c0de-0000-4000-8000-000000000001';
const CWD = '/srv/work';
const NAMES = ENGINES.map(({ name }) => name);
// A resident engine receives permission and prompt later, in requests: tests/app-server/resident-codex.test.ts.
const TOLD_BY_COMMAND = ENGINES.filter(({ resident }) => resident === undefined).map(({ name }) => name);
// Linux refuses an argv string of 128 KiB, the closing NUL included.
const MAX_ARG_BYTES = 128 * 1024 - 1;

function spec(engine: string, changes: Partial<TurnSpec> = {}): TurnSpec {
  return {
    program: [`/opt/${engine}`],
    cwd: CWD,
    prompt: 'Say hello',
    permission: 'workspace-write',
    newSessionId: NEW_ID,
    ...changes,
  };
}

function start(engine: string, changes?: Partial<TurnSpec>): EngineCommand {
  return buildCommand(findEngine(engine), spec(engine, changes), null);
}

function resume(
  engine: string,
  changes?: Partial<TurnSpec>,
  sessionId: string = SESSIONS[engine] ?? '',
): EngineCommand {
  const handle = buildHandle(findEngine(engine), sessionId, { cwd: CWD, home: null, attempt: 1 });
  return buildCommand(findEngine(engine), spec(engine, changes), handle);
}

function both(engine: string, prompt: string): EngineCommand[] {
  return [start(engine, { prompt }), resume(engine, { prompt })];
}

function refusalOf(call: () => unknown): Pick<RequestError, 'name' | 'code'> {
  try {
    call();
  } catch (error) {
    const { name, code } = error as RequestError;
    return { name, code };
  }
  throw new Error('the call was not refused');
}

const HANDLE_MISMATCH = { name: 'RequestError', code: 'HANDLE_MISMATCH' };

// Against endless reconnects, updates while it works, and keys in the commands of the agent.
const CODEX_SETTINGS = ['-c', 'features.unbounded_connection_retries=false', '-c', 'check_for_update_on_startup=false'];
const ASK = ['/usr/bin/node', '/opt/parley.js', 'mcp-ask', '--file', '/data/a "b"/asks.jsonl', '--nonce', 'n'];

describe('a fork', () => {
  const SESSION = SESSIONS['codex'] ?? '';

  test('of codex puts all start options first, even the sandbox and question tool, which the thread lacks', () => {
    const options = { permission: 'read-only', model: 'm1', ask: ASK } as const;
    const { argv, stdin } = buildCommand(findEngine('codex'), spec('codex', options), null, SESSION);
    expect([...argv.slice(0, -3), ...argv.slice(-1)]).toEqual(start('codex', options).argv);
    expect(argv.slice(-3)).toEqual(['fork', SESSION, 'Say hello']);
    expect(stdin).toBeNull();
    expect(buildCommand(findEngine('codex'), spec('codex', { prompt: '-x' }), null, SESSION)).toMatchObject({
      stdin: '-x',
    });
  });

  test('of codex-app-server is asked for later, by a request', () => {
    const engine = findEngine('codex-app-server');
    expect(buildCommand(engine, spec(engine.name), null, SESSION)).toEqual(
      buildCommand(engine, spec(engine.name), null),
    );
  });

  test('is not for an id that Codex could take for something else', () => {
    for (const id of ['not-a-uuid', '--last', ''])
      expect(refusalOf(() => buildCommand(findEngine('codex'), spec('codex'), null, id))).toEqual(HANDLE_MISMATCH);
  });

  test('is for the engines that have a way to make one', () => {
    expect(ENGINES.filter(({ command }) => command.buildFork !== undefined).map(({ name }) => name)).toEqual([
      'claude',
      'codex',
      'codex-app-server',
    ]);
  });
});

describe('the question tool', () => {
  test('is given to codex at start and at resume, offered directly, approved, and waited for', () => {
    for (const { argv } of [start('codex', { ask: ASK }), resume('codex', { ask: ASK })]) {
      const settings = argv.filter((_, index) => argv[index - 1] === '-c');
      expect(settings).toContain('mcp_servers.parley.command="/usr/bin/node"');
      expect(settings).toContain(`mcp_servers.parley.args=${JSON.stringify(ASK.slice(1))}`);
      for (const key of ['omit_tools_from=["deferred"]', 'default_tools_approval_mode="approve"', 'required=true'])
        expect(settings).toContain(`mcp_servers.parley.${key}`);
      const word = argv.indexOf('resume');
      expect(word === -1 || argv.lastIndexOf('-c') < word).toBe(true);
    }
  });

  test('is given to opencode as configuration and always allowed, whatever else is', () => {
    for (const permission of ['read-only', 'workspace-write', 'full'] as const) {
      const config = JSON.parse(resume('opencode', { permission, ask: ASK }).env['OPENCODE_CONFIG_CONTENT'] ?? '') as {
        mcp: object;
        permission?: object;
        agent?: { parley: { permission: object } };
      };
      expect(config.mcp).toEqual({ parley: { type: 'local', command: ASK, enabled: true } });
      const rules = permission === 'full' ? config.permission : config.agent?.parley.permission;
      expect(rules).toMatchObject({
        'parley_*': 'allow',
        ...(permission === 'read-only' ? { edit: 'deny', bash: 'deny' } : {}),
      });
    }
  });

  test('opencode takes nothing in the path of a file for a variable or another file', () => {
    const text = start('opencode', { ask: ['/{env:HOME}/{file:/etc/hosts}/{x}'] }).env['OPENCODE_CONFIG_CONTENT'] ?? '';
    expect(text).not.toMatch(/\{env:|\{file:/);
    expect(JSON.parse(text)).toMatchObject({ mcp: { parley: { command: ['/{env:HOME}/{file:/etc/hosts}/{x}'] } } });
  });

  test('does not change the commands of gemini (which has it in its settings) and iflow', () => {
    for (const engine of ['gemini', 'iflow']) expect(start(engine, { ask: ASK })).toEqual(start(engine));
  });
});

describe('claude', () => {
  const ENV = {
    DISABLE_AUTOUPDATER: '1',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: '1',
    CLAUDE_CODE_MAX_RETRIES: '3',
  };
  const PRINT = ['/opt/claude', '-p', '--output-format', 'stream-json', '--verbose'];
  const SAFE = ['--permission-mode', 'default', '--setting-sources', 'user', '--strict-mcp-config'];
  const SESSION = SESSIONS['claude'] ?? '';

  test('claude starts with a session id of our choice and the prompt on stdin', () => {
    expect(start('claude', { model: 'opus', permission: 'read-only' })).toEqual({
      argv: [...PRINT, '--session-id', NEW_ID, '--model=opus', ...SAFE],
      cwd: CWD,
      stdin: 'Say hello',
      env: ENV,
      chosenSession: NEW_ID,
    });
  });

  test('claude resumes by the session id and chooses none', () => {
    expect(resume('claude', { permission: 'read-only' })).toEqual({
      argv: [...PRINT, '--resume', SESSION, ...SAFE],
      cwd: CWD,
      stdin: 'Say hello',
      env: ENV,
    });
  });

  test('claude forks into a session with an id of our choice', () => {
    const { argv, chosenSession } = buildCommand(findEngine('claude'), spec('claude'), null, SESSION);
    expect(argv.slice(5, 10)).toEqual(['--resume', SESSION, '--fork-session', '--session-id', NEW_ID]);
    expect(chosenSession).toBe(NEW_ID);
  });

  test('claude is given the question tool, always loaded and allowed, at start and at resume', () => {
    const ask = ['/usr/bin/node', '/data/${HOME} $x/parley.js'];
    for (const { argv } of [start('claude', { ask }), resume('claude', { ask })]) {
      expect(JSON.parse(argv[argv.indexOf('--mcp-config') + 1] ?? '')).toEqual({
        mcpServers: {
          parley: {
            type: 'stdio',
            command: '/usr/bin/node',
            // Claude Code expands this to the path as it is.
            args: ['/data/${PARLEY_NEVER_SET:-$}{HOME} $x/parley.js'],
            alwaysLoad: true,
          },
        },
      });
      expect(argv.slice(argv.indexOf('--allowedTools'))).toEqual([
        '--allowedTools',
        'Edit(./**)',
        'mcp__parley__ask_human',
      ]);
    }
    expect(start('claude', { permission: 'read-only' }).argv).not.toContain('--allowedTools');
  });

  test('claude is given the gate as a hook for every tool, and its token in the environment only', () => {
    const gate = { url: 'http://127.0.0.1:1/', token: 'a-secret' };
    const { argv, env } = start('claude', { gate });
    const hook = {
      type: 'http',
      url: gate.url,
      headers: { authorization: 'Bearer $PARLEY_GATE_TOKEN' },
      allowedEnvVars: ['PARLEY_GATE_TOKEN'],
      timeout: 60,
    };
    expect(JSON.parse(argv[argv.indexOf('--settings') + 1] ?? '')).toEqual({
      hooks: { PreToolUse: [{ matcher: '*', hooks: [hook] }] },
    });
    expect(env).toEqual({ ...ENV, PARLEY_GATE_TOKEN: 'a-secret' });
    expect(argv.join(' ')).not.toContain('a-secret');
  });

  test('claude gets no prompt in a turn that begins with a deferred call', () => {
    expect(resume('claude', { resumesCall: true }).stdin).toBeNull();
  });

  test('claude gets the instructions of the workspace in a file', () => {
    const instructions = { path: '/data/instructions.md', text: 'Be brief.' };
    const { argv, file } = start('claude', { instructions });
    expect(argv.slice(-2)).toEqual(['--append-system-prompt-file', '/data/instructions.md']);
    expect(file).toEqual(instructions);
  });

  test('claude gets IS_SANDBOX only with full permission as root, which it refuses otherwise', () => {
    const isRoot = process.getuid?.() === 0;
    expect(start('claude', { permission: 'full' }).env).toEqual(isRoot ? { ...ENV, IS_SANDBOX: '1' } : ENV);
    expect(start('claude').env).toEqual(ENV);
  });
});

describe('codex', () => {
  test('codex starts with its options before the prompt and with stdin closed', () => {
    expect(start('codex')).toEqual({
      argv: [
        '/opt/codex',
        'exec',
        '--json',
        '--skip-git-repo-check',
        '-C',
        CWD,
        '-s',
        'workspace-write',
        ...CODEX_SETTINGS,
        'Say hello',
      ],
      cwd: CWD,
      stdin: null,
      env: {},
    });
  });

  test('codex resumes by the thread id, a separate argument before the prompt', () => {
    expect(resume('codex')).toEqual({
      argv: [
        '/opt/codex',
        'exec',
        '--json',
        '--skip-git-repo-check',
        '-C',
        CWD,
        '-s',
        'workspace-write',
        ...CODEX_SETTINGS,
        'resume',
        SESSIONS['codex'],
        'Say hello',
      ],
      cwd: CWD,
      stdin: null,
      env: {},
    });
  });

  test('codex gets a model and an output schema before the word resume, at start and at resume', () => {
    const options = { model: 'gpt-5.5', outputSchemaFile: '/srv/schema.json' };
    const head = [
      '/opt/codex',
      'exec',
      '--json',
      '--skip-git-repo-check',
      '-C',
      CWD,
      '-s',
      'workspace-write',
      '--model=gpt-5.5',
      ...CODEX_SETTINGS,
      '--output-schema',
      '/srv/schema.json',
    ];
    expect(start('codex', options).argv).toEqual([...head, 'Say hello']);
    expect(resume('codex', options).argv).toEqual([...head, 'resume', SESSIONS['codex'], 'Say hello']);
  });

  test.each(['read-only', 'workspace-write', 'full'] as const)(
    'codex never names its thread by a flag, and no option follows the word resume, with permission %s',
    (permission) => {
      const { argv } = resume('codex', { permission, model: 'gpt-5.5' });
      const word = argv.indexOf('resume');
      expect(argv.slice(word)).toEqual(['resume', SESSIONS['codex'], 'Say hello']);
      expect(argv.slice(0, word).filter((part) => part.includes(SESSIONS['codex'] ?? ''))).toEqual([]);
      expect(argv).not.toContain('--last');
    },
  );

  test('codex gets a prompt with a leading dash on stdin, with a dash in its place', () => {
    for (const prompt of ['-', '--help', '--- a heading', '-C /']) {
      expect(start('codex', { prompt })).toMatchObject({
        stdin: prompt,
        argv: [...start('codex').argv.slice(0, -1), '-'],
      });
      expect(resume('codex', { prompt })).toMatchObject({
        stdin: prompt,
        argv: [...resume('codex').argv.slice(0, -1), '-'],
      });
    }
  });

  test('codex gets a prompt of more than 100 kB on stdin, counted in bytes', () => {
    const short = 'x '.repeat(50_000);
    const long = 'é '.repeat(33_334);
    expect(start('codex', { prompt: short })).toMatchObject({ stdin: null });
    expect(start('codex', { prompt: short }).argv.at(-1)).toBe(short);
    expect(start('codex', { prompt: long })).toMatchObject({ stdin: long });
    expect(start('codex', { prompt: long }).argv.at(-1)).toBe('-');
    expect(resume('codex', { prompt: long })).toMatchObject({ stdin: long });
  });

  // `codex exec review` would start a code review, `codex exec resume` would look for a thread.
  test('codex never takes a prompt of one word for a subcommand of that name', () => {
    for (const prompt of ['resume', 'review', 'fork', 'help']) {
      const { argv, stdin } = start('codex', { prompt });
      const shielded = argv.at(-2) === '--';
      expect(shielded ? argv.at(-1) : stdin, prompt).toBe(prompt);
      expect(shielded || argv.at(-1) === '-', prompt).toBe(true);
    }
  });
});

describe('gemini', () => {
  test('gemini starts with a session id of our choice and the prompt on stdin', () => {
    expect(start('gemini', { model: 'gemini-2.5-flash' })).toEqual({
      argv: [
        '/opt/gemini',
        '--model=gemini-2.5-flash',
        '-o',
        'stream-json',
        '--approval-mode',
        'auto_edit',
        '--skip-trust',
        '--session-id',
        NEW_ID,
      ],
      cwd: CWD,
      stdin: 'Say hello',
      env: { GEMINI_CLI_NO_RELAUNCH: '1', GEMINI_CLI_TRUST_WORKSPACE: '' },
      chosenSession: NEW_ID,
    });
    expect(start('gemini').argv).toEqual([
      '/opt/gemini',
      '-o',
      'stream-json',
      '--approval-mode',
      'auto_edit',
      '--skip-trust',
      '--session-id',
      NEW_ID,
    ]);
  });

  test('gemini resumes by the session id of the turn before, in the same directory', () => {
    expect(resume('gemini')).toEqual({
      argv: [
        '/opt/gemini',
        '-o',
        'stream-json',
        '--approval-mode',
        'auto_edit',
        '--skip-trust',
        '--resume',
        SESSIONS['gemini'],
      ],
      cwd: CWD,
      stdin: 'Say hello',
      env: { GEMINI_CLI_NO_RELAUNCH: '1', GEMINI_CLI_TRUST_WORKSPACE: '' },
    });
  });

  test.each(['1', '12', '123456789', 'latest', ''])(
    'gemini is never resumed by "%s", which is no session id',
    (value) => {
      expect(refusalOf(() => resume('gemini', {}, value))).toEqual(HANDLE_MISMATCH);
    },
  );

  test('gemini never resumes the session id that was only chosen, and never lists sessions', () => {
    const { argv } = resume('gemini');
    expect(argv).not.toContain(NEW_ID);
    expect(argv).not.toContain('--session-id');
    expect(argv).not.toContain('--list-sessions');
  });
});

describe('iflow', () => {
  test('iflow starts with its prompt behind -p', () => {
    expect(start('iflow', { model: 'Qwen3-Coder' })).toEqual({
      argv: ['/opt/iflow', '--autoEdit', '--model=Qwen3-Coder', '-p', 'Say hello'],
      cwd: CWD,
      stdin: null,
      env: {},
    });
  });

  test('iflow resumes by the session id of its last block', () => {
    expect(resume('iflow').argv).toEqual([
      '/opt/iflow',
      '--autoEdit',
      '--resume',
      SESSIONS['iflow'],
      '-p',
      'Say hello',
    ]);
  });

  test('iflow gets a prompt with a leading dash in one word with its option', () => {
    expect(start('iflow', { prompt: '--help' }).argv).toEqual(['/opt/iflow', '--autoEdit', '--prompt=--help']);
    expect(resume('iflow', { prompt: '-' }).argv).toEqual([
      '/opt/iflow',
      '--autoEdit',
      '--resume',
      SESSIONS['iflow'],
      '--prompt=-',
    ]);
  });

  test('iflow never gets --resume without an id, so no picker can open', () => {
    expect(start('iflow').argv.filter((part) => /^(-r|--resume|-c|--continue)/.test(part))).toEqual([]);
    for (const permission of ['read-only', 'workspace-write', 'full'] as const) {
      const { argv } = resume('iflow', { permission });
      expect(argv[argv.indexOf('--resume') + 1]).toBe(SESSIONS['iflow']);
    }
    expect(refusalOf(() => resume('iflow', {}, ''))).toEqual(HANDLE_MISMATCH);
  });

  test('iflow is never resumed by its conversation id', () => {
    expect(refusalOf(() => resume('iflow', {}, '4d8880a8-39cb-43df-919b-7525ec6637f7'))).toEqual(HANDLE_MISMATCH);
  });
});

describe('opencode', () => {
  const config = {
    autoupdate: false,
    share: 'disabled',
    agent: { parley: { mode: 'primary', permission: { external_directory: 'deny' } } },
    instructions: [`${CWD}/AGENTS.md`],
  };
  const env = {
    OPENCODE_CONFIG_CONTENT: JSON.stringify(config),
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_PROJECT_CONFIG: '1',
  };

  test('opencode starts with a title, its directory and the prompt on stdin', () => {
    expect(start('opencode', { model: 'fake/fake-model' })).toEqual({
      argv: [
        '/opt/opencode',
        'run',
        '--format',
        'json',
        '--dir',
        CWD,
        '--model=fake/fake-model',
        '--agent',
        'parley',
        '--title',
        'parley',
      ],
      cwd: CWD,
      stdin: 'Say hello',
      env,
    });
  });

  test('opencode resumes by its session id and names the directory again', () => {
    expect(resume('opencode')).toEqual({
      argv: [
        '/opt/opencode',
        'run',
        '--format',
        'json',
        '--dir',
        CWD,
        '--agent',
        'parley',
        '--session',
        SESSIONS['opencode'],
      ],
      cwd: CWD,
      stdin: 'Say hello',
      env,
    });
  });
});

describe('rehearsal', () => {
  test('rehearsal starts with its interpreter, a session id of our choice and the prompt on stdin', () => {
    expect(start('rehearsal', { program: ['/opt/node', '/opt/rehearsal/main.js'], model: 'script-1' })).toEqual({
      argv: [
        '/opt/node',
        '/opt/rehearsal/main.js',
        '--permission',
        'workspace-write',
        '--model=script-1',
        '--new-session',
        NEW_ID,
      ],
      cwd: CWD,
      stdin: 'Say hello',
      env: {},
    });
  });

  test('rehearsal resumes by its session id and names no new one', () => {
    expect(resume('rehearsal')).toEqual({
      argv: ['/opt/rehearsal', '--permission', 'workspace-write', '--session', SESSIONS['rehearsal']],
      cwd: CWD,
      stdin: 'Say hello',
      env: {},
    });
  });
});

describe('permissions', () => {
  const FLAGS: readonly (readonly [string, Permission, readonly string[]])[] = [
    ['claude', 'read-only', ['--permission-mode', 'default', '--setting-sources', 'user', '--strict-mcp-config']],
    ['claude', 'workspace-write', ['--permission-mode', 'default', '--setting-sources', 'user', '--strict-mcp-config']],
    ['claude', 'workspace-write', ['--allowedTools', 'Edit(./**)']],
    ['claude', 'full', ['--permission-mode', 'bypassPermissions']],
    ['codex', 'read-only', ['-s', 'read-only']],
    ['codex', 'workspace-write', ['-s', 'workspace-write']],
    ['codex', 'full', ['-s', 'danger-full-access']],
    ['gemini', 'read-only', ['--approval-mode', 'default']],
    ['gemini', 'workspace-write', ['--approval-mode', 'auto_edit']],
    ['gemini', 'full', ['--approval-mode', 'yolo']],
    ['iflow', 'read-only', ['--plan']],
    ['iflow', 'workspace-write', ['--autoEdit']],
    ['iflow', 'full', ['--yolo']],
    ['rehearsal', 'read-only', ['--permission', 'read-only']],
    ['rehearsal', 'workspace-write', ['--permission', 'workspace-write']],
    ['rehearsal', 'full', ['--permission', 'full']],
  ];

  test.each(FLAGS)('%s is given the permission %s at start and again at resume', (engine, permission, flags) => {
    for (const { argv } of [start(engine, { permission }), resume(engine, { permission })]) {
      const at = argv.indexOf(flags[0] ?? '');
      expect(argv.slice(at, at + flags.length)).toEqual(flags);
    }
  });

  const RULES: readonly (readonly [Permission, object | undefined, boolean])[] = [
    [
      'read-only',
      { edit: 'deny', bash: 'deny', task: 'deny', webfetch: 'deny', websearch: 'deny', external_directory: 'deny' },
      false,
    ],
    ['workspace-write', { external_directory: 'deny' }, false],
    ['full', undefined, true],
  ];

  test.each(RULES)(
    'opencode is given the permission %s as rules at start and again at resume',
    (permission, rules, auto) => {
      for (const { argv, env } of [start('opencode', { permission }), resume('opencode', { permission })]) {
        const config = JSON.parse(env['OPENCODE_CONFIG_CONTENT'] ?? '') as {
          agent?: { parley: { permission: object } };
        };
        expect(config.agent?.parley.permission).toEqual(rules);
        expect([argv.includes('--auto'), argv.includes('--agent'), 'OPENCODE_DISABLE_PROJECT_CONFIG' in env]).toEqual([
          auto,
          !auto,
          !auto,
        ]);
      }
    },
  );

  test.each(TOLD_BY_COMMAND)('%s is given something else for each permission', (engine) => {
    const commands = (['read-only', 'workspace-write', 'full'] as const).map((permission) =>
      JSON.stringify(start(engine, { permission })),
    );
    expect(new Set(commands).size).toBe(3);
  });
});

describe('prompts', () => {
  test.each(TOLD_BY_COMMAND)(
    'a prompt of 300 kB reaches %s whole, and no argument is longer than the system allows',
    (engine) => {
      const prompt = 'x'.repeat(300_000);
      for (const { argv, stdin } of both(engine, prompt)) {
        expect(argv.filter((part) => Buffer.byteLength(part) > MAX_ARG_BYTES).map((part) => part.length)).toEqual([]);
        expect(stdin).toBe(prompt);
      }
    },
  );

  test.each(TOLD_BY_COMMAND)(
    'a prompt that looks like an option never becomes an argument of its own for %s',
    (engine) => {
      for (const prompt of ['-', '--yolo', '--resume', '-rf', '--- a heading']) {
        for (const { argv, stdin } of both(engine, prompt)) {
          const own = engine === 'codex' && prompt === '-' ? argv.slice(0, -1) : argv;
          expect(
            own.filter(
              (part, index) => part === prompt && !(prompt === '--resume' && argv[index + 1] === SESSIONS[engine]),
            ),
          ).toEqual([]);
          expect(stdin ?? argv.find((part) => part.endsWith(`=${prompt}`))).toBeDefined();
        }
      }
    },
  );

  test.each(NAMES.filter((name) => !TOLD_BY_COMMAND.includes(name)))(
    'nothing of a turn is in the command of %s',
    (engine) => {
      const plain = start(engine);
      for (const permission of ['read-only', 'full'] as const) {
        const changes = {
          permission,
          prompt: '--yolo',
          model: 'm',
          outputSchemaFile: '/srv/schema.json',
          ask: ASK,
          newSessionId: 'x',
        };
        for (const command of [start(engine, changes), resume(engine, changes)]) expect(command).toEqual(plain);
      }
    },
  );

  test.each(NAMES)('a prompt with a NUL character never becomes part of an argument of %s', (engine) => {
    for (const { argv } of both(engine, 'before\0after'))
      expect(argv.filter((part) => part.includes('\0'))).toEqual([]);
  });

  test.each(NAMES)('neither the prompt nor anything else of the caller is put into the environment of %s', (engine) => {
    const prompt = 'prompt-marker sk-secretsecretsecret';
    for (const { env } of both(engine, prompt)) {
      expect(JSON.stringify(env)).not.toContain('prompt-marker');
      expect(Object.keys(env).filter((name) => /key|token|secret|password|prompt/i.test(name))).toEqual([]);
      expect(Object.values(env).filter((value) => /sk-|secret|token/i.test(value))).toEqual([]);
    }
  });
});

describe('values of a caller', () => {
  // Creation refuses such models; a run that an older version stored may still have one.
  test.each(TOLD_BY_COMMAND)(
    'a stored model that looks like an option stays one word with --model for %s',
    (engine) => {
      for (const model of ['--yolo', '--auto', '--attach=http://127.0.0.1:1', '-c', '', 'a b']) {
        for (const { argv } of [start(engine, { model }), resume(engine, { model })]) {
          expect(argv.filter((part) => part.startsWith('--model'))).toEqual([`--model=${model}`]);
          expect(argv.filter((part) => part === '-m')).toEqual([]);
        }
      }
    },
  );

  test.each(TOLD_BY_COMMAND)('every other value of a caller in the arguments of %s starts with no dash', (engine) => {
    const plain = { model: 'm', prompt: 'two words', outputSchemaFile: '/srv/schema.json' };
    for (const { argv } of [start(engine, plain), resume(engine, plain)]) {
      const values = argv.filter(
        (part) =>
          part.includes(CWD) ||
          part.includes('two words') ||
          part.includes('/srv/schema') ||
          part === NEW_ID ||
          part === SESSIONS[engine],
      );
      expect(values.filter((part) => part.startsWith('-'))).toEqual([]);
    }
  });
});

describe('handles that cannot be right', () => {
  test.each(NAMES)('a session of another engine is refused by %s', (engine) => {
    for (const other of ENGINES.filter(({ name }) => name !== engine)) {
      const handle = buildHandle(other, SESSIONS[engine] ?? '', { cwd: CWD, home: null, attempt: 1 });
      expect(refusalOf(() => buildCommand(findEngine(engine), spec(engine), handle))).toEqual(HANDLE_MISMATCH);
    }
  });

  test.each(NAMES)('a session of another directory is refused by %s', (engine) => {
    for (const cwd of ['/srv/other', '/srv/work/sub', '/srv']) {
      expect(refusalOf(() => resume(engine, { cwd }))).toEqual(HANDLE_MISMATCH);
    }
  });

  test.each(NAMES)('an index, latest, an option, blanks and nothing at all are no session ids of %s', (engine) => {
    const good = SESSIONS[engine] ?? '';
    for (const value of [
      '',
      ' ',
      '0',
      '3',
      '42',
      'latest',
      '--last',
      '-r',
      '--yolo',
      'last',
      `--${good}`,
      ` ${good}`,
      `${good} `,
      `${good}\n`,
      `${good} --yolo`,
      `${good}\0`,
    ]) {
      expect(
        refusalOf(() => resume(engine, {}, value)),
        JSON.stringify(value),
      ).toEqual(HANDLE_MISMATCH);
    }
  });

  test.each(['claude', 'codex', 'codex-app-server', 'iflow', 'opencode', 'rehearsal'])(
    'a name that somebody gave a session is no session id of %s',
    (engine) => {
      for (const value of ['my-thread', 'fix the tests', 'my_session-1', 'refactoring2026']) {
        expect(
          refusalOf(() => resume(engine, {}, value)),
          value,
        ).toEqual(HANDLE_MISMATCH);
      }
    },
  );

  test('a codex thread id is a whole UUID and nothing around it', () => {
    const id = SESSIONS['codex'] ?? '';
    for (const value of [
      id.slice(0, -1),
      `${id}0`,
      `{${id}}`,
      `urn:uuid:${id}`,
      id.replaceAll('-', ''),
      id.replace('0', 'g'),
    ]) {
      expect(
        refusalOf(() => resume('codex', {}, value)),
        value,
      ).toEqual(HANDLE_MISMATCH);
    }
    expect(resume('codex', {}, id.toUpperCase()).argv).toContain(id.toUpperCase());
  });

  test('the refusal names the problem', () => {
    expect(() => resume('codex', {}, '--last')).toThrow('"--last" is not a codex session id.');
    expect(() => resume('codex', { cwd: '/srv/other' })).toThrow(
      'The session belongs to the directory /srv/work, not to /srv/other.',
    );
  });

  test('an engine that does not exist is refused with the names of those that do', () => {
    expect(refusalOf(() => findEngine('other'))).toEqual({ name: 'RequestError', code: 'UNKNOWN_ENGINE' });
    expect(() => findEngine('other')).toThrow('claude, codex, codex-app-server, gemini, iflow, opencode, rehearsal');
  });
});
