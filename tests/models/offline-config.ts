// How each real CLI is configured to work without a network except for its scripted model: the text of its
// configuration, its place in a private home, and the environment. Keys are dummies; nothing of the user's own settings
// is read. OFFLINE is for a CLI that is called directly. PERSON is for Parley: such a user's settings only name the
// model, which proves that Parley makes all other settings itself.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

// A program that speaks MCP on stdin and stdout, offered to the model as a tool server of this name.
export interface McpServer {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  readonly env?: Readonly<Record<string, string>>;
}

export interface Offline {
  // By path under the home.
  readonly files: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
}

export const CLAUDE_MODEL = 'claude-opus-5-5';
// A slug that Codex knows: other names cause a warning and no patch tool.
export const CODEX_MODEL = 'gpt-5.5';
export const GEMINI_MODEL = 'gemini-2.5-flash';
export const OPENCODE_MODEL = 'scripted/scripted-model';

function claudeEnv(modelUrl: string): Record<string, string> {
  return { ANTHROPIC_BASE_URL: modelUrl, ANTHROPIC_API_KEY: 'dummy' };
}

function buildClaudeMcp(mcp?: McpServer): string {
  const [command, ...args] = mcp?.command ?? [''];
  const server = { type: 'stdio', command, args, env: mcp?.env ?? {}, alwaysLoad: true };
  return JSON.stringify({ mcpServers: mcp ? { [mcp.name]: server } : {} });
}

function codexLines(modelUrl: string): string[] {
  return [
    `model = "${CODEX_MODEL}"`,
    'model_provider = "scripted"',
    'sandbox_mode = "read-only"',
    'web_search = "disabled"',
    'analytics.enabled = false',
    'feedback.enabled = false',
    'features.plugins = false',
    'features.apps = false',
    'model_providers.scripted.name = "scripted"',
    `model_providers.scripted.base_url = "${modelUrl}/v1"`,
    'model_providers.scripted.wire_api = "responses"',
    'model_providers.scripted.env_key = "SCRIPTED_API_KEY"',
    'model_providers.scripted.supports_websockets = false',
  ];
}

function buildCodexConfig(modelUrl: string, mcp?: McpServer): string {
  const lines = [
    ...codexLines(modelUrl),
    'check_for_update_on_startup = false',
    'features.unbounded_connection_retries = false',
    'shell_environment_policy.inherit = "core"',
    'model_providers.scripted.request_max_retries = 0',
    'model_providers.scripted.stream_max_retries = 0',
    'model_providers.scripted.stream_idle_timeout_ms = 20000',
  ];
  if (mcp) {
    const [command, ...args] = mcp.command;
    lines.push(
      `[mcp_servers.${mcp.name}]`,
      `command = ${JSON.stringify(command)}`,
      `args = ${JSON.stringify(args)}`,
      // Without these three the tool is hidden, refused, or silently missing.
      'omit_tools_from = ["deferred"]',
      'default_tools_approval_mode = "approve"',
      'required = true',
      'startup_timeout_sec = 20',
      `[mcp_servers.${mcp.name}.env]`,
      ...Object.entries(mcp.env ?? {}).map(([name, value]) => `${name} = ${JSON.stringify(value)}`),
    );
  }
  return `${lines.join('\n')}\n`;
}

const GEMINI_SETTINGS = {
  security: { auth: { selectedType: 'gemini-api-key' } },
  privacy: { usageStatisticsEnabled: false },
  telemetry: { enabled: false },
};

function buildGeminiSettings(mcp?: McpServer): string {
  const [command, ...args] = mcp?.command ?? [''];
  return JSON.stringify({
    ...GEMINI_SETTINGS,
    // With more attempts, a failing service is retried for minutes; with retention, the next session deletes a resumed
    // one.
    general: {
      enableAutoUpdate: false,
      enableAutoUpdateNotification: false,
      maxAttempts: 1,
      sessionRetention: { enabled: false },
    },
    ...(mcp ? { mcpServers: { [mcp.name]: { command, args, env: mcp.env ?? {}, trust: true } } } : {}),
  });
}

function opencodeSettings(modelUrl: string): object {
  const [provider = '', model = ''] = OPENCODE_MODEL.split('/');
  return {
    model: OPENCODE_MODEL,
    small_model: OPENCODE_MODEL,
    enabled_providers: [provider],
    provider: {
      [provider]: {
        npm: '@ai-sdk/openai-compatible',
        name: 'Scripted',
        options: { baseURL: `${modelUrl}/v1`, apiKey: 'dummy' },
        models: { [model]: { name: 'Scripted model', limit: { context: 100_000, output: 8000 } } },
      },
    },
  };
}

function buildOpencodeConfig(modelUrl: string, mcp?: McpServer): string {
  return JSON.stringify({
    ...opencodeSettings(modelUrl),
    autoupdate: false,
    share: 'disabled',
    ...(mcp
      ? { mcp: { [mcp.name]: { type: 'local', command: mcp.command, environment: mcp.env ?? {}, enabled: true } } }
      : {}),
  });
}

// The same places as in Parley's private homes (`home.ts` of each engine).
const OFFLINE = {
  claude: (home, modelUrl, mcp) => ({
    files: { '.claude/settings.json': '{}', 'mcp.json': buildClaudeMcp(mcp) },
    env: {
      ...claudeEnv(modelUrl),
      CLAUDE_CONFIG_DIR: join(home, '.claude'),
      CLAUDE_CODE_TMPDIR: join(home, 'tmp'),
      DISABLE_AUTOUPDATER: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      CLAUDE_CODE_MAX_RETRIES: '1',
    },
  }),
  codex: (home, modelUrl, mcp) => ({
    files: { '.codex/config.toml': buildCodexConfig(modelUrl, mcp) },
    env: { CODEX_HOME: join(home, '.codex'), SCRIPTED_API_KEY: 'dummy' },
  }),
  gemini: (home, modelUrl, mcp) => ({
    files: { '.gemini/settings.json': buildGeminiSettings(mcp) },
    env: {
      GEMINI_CLI_HOME: home,
      GEMINI_API_KEY: 'dummy',
      GOOGLE_GEMINI_BASE_URL: modelUrl,
      GEMINI_CLI_TRUST_WORKSPACE: 'true',
      GEMINI_CLI_NO_RELAUNCH: '1',
    },
  }),
  opencode: (home, modelUrl, mcp) => ({
    files: { 'config/opencode/opencode.json': buildOpencodeConfig(modelUrl, mcp) },
    env: {
      XDG_DATA_HOME: join(home, 'data'),
      XDG_CONFIG_HOME: join(home, 'config'),
      XDG_STATE_HOME: join(home, 'state'),
      XDG_CACHE_HOME: join(home, 'cache'),
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      // Otherwise every run looks for a package in the registry, in the background.
      npm_config_offline: 'true',
    },
  }),
} as const satisfies Record<string, (home: string, modelUrl: string, mcp?: McpServer) => Offline>;

export type RealEngine = keyof typeof OFFLINE;

// By path under the home of the user.
export const PERSON: Record<RealEngine, (modelUrl: string) => Offline> = {
  claude: (modelUrl) => ({ files: { '.claude/settings.json': '{}' }, env: claudeEnv(modelUrl) }),
  codex: (modelUrl) => ({
    files: { '.codex/config.toml': `${codexLines(modelUrl).join('\n')}\n` },
    env: { SCRIPTED_API_KEY: 'dummy' },
  }),
  gemini: (modelUrl) => ({
    files: { '.gemini/settings.json': JSON.stringify(GEMINI_SETTINGS) },
    env: { GEMINI_API_KEY: 'dummy', GOOGLE_GEMINI_BASE_URL: modelUrl },
  }),
  opencode: (modelUrl) => ({
    files: { '.config/opencode/opencode.json': JSON.stringify(opencodeSettings(modelUrl)) },
    env: { OPENCODE_DISABLE_MODELS_FETCH: '1' },
  }),
};

// Writes the configuration into a home and returns its environment, including HOME and a private TMPDIR.
export function prepareOfflineHome(
  engine: RealEngine,
  home: string,
  modelUrl: string,
  mcp?: McpServer,
): Record<string, string> {
  const { files, env } = OFFLINE[engine](home, modelUrl, mcp);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), text);
  }
  mkdirSync(join(home, 'tmp'), { recursive: true });
  return { HOME: home, TMPDIR: join(home, 'tmp'), ...env };
}
