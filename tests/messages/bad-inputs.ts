// Bad inputs of every kind, with the sentences that explain them.

export interface BadInput {
  readonly kind: 'body' | 'query' | 'request' | 'setting' | 'option' | 'webhook' | 'token' | 'schema' | 'answer';
  // The schema, for the parts of a request.
  readonly name?: string;
  readonly value: unknown;
  readonly english: string;
  readonly chinese: string;
}

export const BAD_INPUTS: readonly BadInput[] = [
  {
    kind: 'body',
    name: 'create',
    value: { engine: 'codex', prompt: '  ' },
    english: 'The prompt is empty.',
    chinese: 'prompt 为空。',
  },
  {
    kind: 'body',
    name: 'create',
    value: { engine: 'codex' },
    english: '"prompt" is missing.',
    chinese: '缺少 "prompt"。',
  },
  {
    kind: 'body',
    name: 'create',
    value: { engine: 'codex', prompt: 5 },
    english: 'prompt cannot be 5: it takes a text.',
    chinese: 'prompt 不能是 5：应为文本。',
  },
  {
    kind: 'body',
    name: 'create',
    value: { engine: '', prompt: 'x' },
    english: 'The engine is empty.',
    chinese: 'engine 为空。',
  },
  {
    kind: 'body',
    name: 'create',
    value: { engine: 'codex', prompt: 'x', modl: 'y' },
    english: 'There is no "modl"; did you mean "model"?',
    chinese: '没有 "modl"；你是想写 "model" 吗？',
  },
  {
    kind: 'body',
    name: 'create',
    value: { engine: 'a\u0000b', prompt: 'x' },
    english: 'engine cannot be "a\\u0000b": it takes a text without NUL characters.',
    chinese: 'engine 不能是 "a\\u0000b"：应为不含 NUL 字符的文本。',
  },
  {
    kind: 'body',
    name: 'create',
    value: { engine: 'codex', prompt: 'x', output_schema: 5 },
    english: 'output_schema cannot be 5: it takes an object or true or false.',
    chinese: 'output_schema 不能是 5：应为对象或布尔值（true 或 false）。',
  },
  {
    kind: 'body',
    name: 'create',
    value: { engine: 'codex', prompt: 'x', labels: { '': 'x' } },
    english: '"" cannot be a name in labels: it is empty.',
    chinese: 'labels 中的名称不能是 ""：不能为空。',
  },
  {
    kind: 'body',
    name: 'create',
    value: { engine: 'codex', prompt: 'x', labels: { a: 1 } },
    english: 'labels.a cannot be 1: it takes a text.',
    chinese: 'labels.a 不能是 1：应为文本。',
  },
  {
    kind: 'body',
    name: 'create',
    value: { engine: 'codex', prompt: 'x', permission: 'all' },
    english: 'permission cannot be "all": it takes "read-only", "workspace-write" or "full".',
    chinese: 'permission 不能是 "all"：应为 "read-only"、"workspace-write" 或 "full"。',
  },
  {
    kind: 'body',
    name: 'create',
    value: { engine: 'codex', prompt: 'x', force: 'yes' },
    english: 'force cannot be "yes": it takes true or false.',
    chinese: 'force 不能是 "yes"：应为布尔值（true 或 false）。',
  },
  {
    kind: 'body',
    name: 'create',
    value: { engine: 'x'.repeat(201), prompt: 'x' },
    english: 'engine has 201 characters: the most is 200 characters.',
    chinese: 'engine 有 201 个字符：最多 200 个字符。',
  },
  {
    kind: 'body',
    name: 'create',
    value: [1],
    english: 'The body cannot be a list of 1 items: it takes an object.',
    chinese: '请求体不能是含 1 项的列表：应为对象。',
  },
  {
    kind: 'body',
    name: 'create',
    value: { engine: 1 },
    english: 'engine cannot be 1: it takes a text. "prompt" is missing.',
    chinese: 'engine 不能是 1：应为文本。缺少 "prompt"。',
  },
  {
    kind: 'body',
    name: 'retry',
    value: { key: 1 },
    english: 'There is no "key"; there are request_id, force.',
    chinese: '没有 "key"；可用的有 request_id, force。',
  },
  {
    kind: 'body',
    name: 'reply',
    value: { interaction_id: 7 },
    english: 'interaction_id cannot be 7: it takes a text.',
    chinese: 'interaction_id 不能是 7：应为文本。',
  },
  {
    kind: 'body',
    name: 'reply',
    value: { interaction_id: '' },
    english: 'interaction_id is empty.',
    chinese: 'interaction_id 为空。',
  },
  {
    kind: 'query',
    name: 'list',
    value: { limit: '0' },
    english: 'limit cannot be "0": the least is 1.',
    chinese: 'limit 不能是 "0"：最小为 1。',
  },
  {
    kind: 'query',
    name: 'list',
    value: { limit: 'many' },
    english: 'limit cannot be "many": it takes a whole number from 1 to 500.',
    chinese: 'limit 不能是 "many"：应为 1 到 500 的整数。',
  },
  {
    kind: 'query',
    name: 'list',
    value: { label: 'x' },
    english: 'label cannot be "x": it takes name=value.',
    chinese: 'label 不能是 "x"：应为 name=value 的形式。',
  },
  {
    kind: 'query',
    name: 'list',
    value: { status: 'done' },
    english:
      'status cannot be "done": it takes "queued", "running", "waiting_user", "succeeded", ' +
      '"failed" or "canceled".',
    chinese: 'status 不能是 "done"：应为 "queued"、"running"、"waiting_user"、"succeeded"、"failed" 或 "canceled"。',
  },
  {
    kind: 'query',
    name: 'history',
    value: { from_ts: 'today' },
    english: 'from_ts cannot be "today": it takes a time such as 2026-01-31T12:00:00Z.',
    chinese: 'from_ts 不能是 "today"：应为形如 2026-01-31T12:00:00Z 的时间。',
  },
  {
    kind: 'query',
    name: 'history',
    value: { from_seq: '-1' },
    english: 'from_seq cannot be "-1": it takes a whole number in decimal digits.',
    chinese: 'from_seq 不能是 "-1"：应为用十进制数字书写的整数。',
  },
  {
    kind: 'query',
    name: 'logs',
    value: { attempt: 'x' },
    english: 'attempt cannot be "x": it takes a whole number.',
    chinese: 'attempt 不能是 "x"：应为整数。',
  },
  {
    kind: 'request',
    value: { engine: 'codex', prompt: '' },
    english: 'The prompt is empty.',
    chinese: 'prompt 为空。',
  },
  {
    kind: 'request',
    value: { engine: 'codex', prompt: 'x', model: '--help' },
    english:
      '"--help" is not a model name: it starts with a letter or a digit, then letters, digits ' +
      'and _ . / : @ + - follow, at most 200 in all. Use the name that the engine itself lists.',
    chinese:
      '"--help" 不是模型名：以字母或数字开头，其后为字母、数字和 _ . / : @ + -，总共最多 200 ' +
      '个字符。请使用引擎自己列出的名称。',
  },
  {
    kind: 'request',
    value: { engine: 'codex', prompt: 'x', output_schema: { $ref: 'https://example.org' } },
    english:
      'output_schema cannot be used: its $ref "https://example.org" leads out of the schema; ' +
      'only references that start with # are followed.',
    chinese: 'output_schema 无法使用：其 $ref "https://example.org" 指向 schema 之外；只支持以 # 开头的引用。',
  },
  {
    kind: 'setting',
    value: { slot: 1 },
    english: 'config.json: There is no setting "slot". Did you mean "slots"?',
    chinese: 'config.json：没有“slot”这项设置。你是想写“slots”吗？',
  },
  {
    kind: 'setting',
    value: { nonsense: 1 },
    english:
      'config.json: There is no setting "nonsense". The settings are engines, env_passthrough, ' +
      'workspace_instructions, slots, queue_limit, recovery, defaults, silence_notice_sec, workspace_roots, ' +
      'allowed_hosts, public_url, trusted_proxies, max_streams, max_streams_per_token, ' +
      'shutdown_grace_sec, webhooks, sessions, cluster, retention.',
    chinese:
      'config.json：没有“nonsense”这项设置。可用的设置：engines, env_passthrough, ' +
      'workspace_instructions, slots, ' +
      'queue_limit, recovery, defaults, silence_notice_sec, workspace_roots, allowed_hosts, ' +
      'public_url, trusted_proxies, max_streams, max_streams_per_token, shutdown_grace_sec, ' +
      'webhooks, sessions, cluster, retention。',
  },
  {
    kind: 'setting',
    value: { slots: 0 },
    english: 'config.json: slots cannot be 0: the least is 1.',
    chinese: 'config.json：slots 不能是 0：最小为 1。',
  },
  {
    kind: 'setting',
    value: { slots: 'many' },
    english: 'config.json: slots cannot be "many": it takes a whole number.',
    chinese: 'config.json：slots 不能是 "many"：应为整数。',
  },
  {
    kind: 'setting',
    value: { defaults: { turn_timeout_sec: '1h' } },
    english: 'config.json: defaults.turn_timeout_sec cannot be "1h": it takes a number or null.',
    chinese: 'config.json：defaults.turn_timeout_sec 不能是 "1h"：应为数字或 null。',
  },
  {
    kind: 'setting',
    value: { defaults: { mode: 'ask' } },
    english: 'config.json: defaults.mode cannot be "ask": it takes "auto" or "interactive".',
    chinese: 'config.json：defaults.mode 不能是 "ask"：应为 "auto" 或 "interactive"。',
  },
  {
    kind: 'setting',
    value: { cluster: [] },
    english: 'config.json: cluster cannot be an empty list: it takes an object.',
    chinese: 'config.json：cluster 不能是空列表：应为对象。',
  },
  {
    kind: 'setting',
    value: { cluster: { lease: 1 } },
    english: 'config.json: There is no "lease" in cluster; there are files, lease_sec, gone_sec, connections, url.',
    chinese: 'config.json：cluster 中没有 "lease"；可用的有 files, lease_sec, gone_sec, connections, url。',
  },
  {
    kind: 'setting',
    value: { engines: { codx: { bin: '/x' } } },
    english: 'config.json: engines: there is no engine "codx". Did you mean "codex"?',
    chinese: 'config.json：engines：没有引擎“codx”。你是想写“codex”吗？',
  },
  {
    kind: 'setting',
    value: { engines: { codex: { path: '/x' } } },
    english: 'config.json: There is no "path" in engines.codex; the only name there is bin.',
    chinese: 'config.json：engines.codex 中没有 "path"；只有 bin。',
  },
  {
    kind: 'setting',
    value: { env_passthrough: ['*'] },
    english: 'config.json: env_passthrough[0] cannot be "*": it takes the name of an environment variable.',
    chinese: 'config.json：env_passthrough[0] 不能是 "*"：应为环境变量名。',
  },
  {
    kind: 'setting',
    value: { shutdown_grace_sec: 3601 },
    english: 'config.json: shutdown_grace_sec cannot be 3601: the most is 3600.',
    chinese: 'config.json：shutdown_grace_sec 不能是 3601：最大为 3600。',
  },
  {
    kind: 'setting',
    value: { public_url: 'x' },
    english:
      'config.json: public_url cannot be "x": it takes an address such as ' +
      'https://parley.example.org, without a path.',
    chinese: 'config.json：public_url 不能是 "x"：应为形如 https://parley.example.org 的地址，不含路径。',
  },
  {
    kind: 'setting',
    value: {
      webhooks: [
        { name: 'a', url: 'ftp://x', secret_env: 'S' },
        { name: 'a', url: 'https://x' },
      ],
    },
    english:
      'config.json: Webhook "a": its url does not begin with http:// or https://. Webhook "a": ' +
      'set exactly one of secret_env and secret_file. Two webhooks are called "a".',
    chinese:
      'config.json：webhook“a”：url 没有以 http:// 或 https:// 开头。webhook“a”：secret_env 和 ' +
      'secret_file 必须且只能设置一个。有两个名为“a”的 webhook。',
  },
  {
    kind: 'setting',
    value: { webhooks: [{ name: 'a b', url: 'https://ann:hidden@x', secret_env: 'S', events: [] }] },
    english:
      'config.json: webhooks[0].name cannot be "a b": it takes 1 to 64 letters, digits and . _ ' +
      '-. webhooks[0].events is empty.',
    chinese: 'config.json：webhooks[0].name 不能是 "a b"：应为 1 到 64 个字母、数字和 . _ -。webhooks[0].events 为空。',
  },
  {
    kind: 'setting',
    value: { slots: 0, a: 1, b: 1, c: 1, d: 1, e: 1, f: 1 },
    english:
      'config.json: There is no setting "a". The settings are engines, env_passthrough, ' +
      'workspace_instructions, slots, ' +
      'queue_limit, recovery, defaults, silence_notice_sec, workspace_roots, allowed_hosts, ' +
      'public_url, trusted_proxies, max_streams, max_streams_per_token, shutdown_grace_sec, ' +
      'webhooks, sessions, cluster, retention. There is no setting "b". The settings are ' +
      'engines, env_passthrough, ' +
      'workspace_instructions, slots, queue_limit, recovery, defaults, silence_notice_sec, ' +
      'workspace_roots, allowed_hosts, public_url, trusted_proxies, max_streams, ' +
      'max_streams_per_token, shutdown_grace_sec, webhooks, sessions, cluster, retention. ' +
      'There is no setting "c". The settings are engines, env_passthrough, ' +
      'workspace_instructions, slots, queue_limit, ' +
      'recovery, defaults, silence_notice_sec, workspace_roots, allowed_hosts, public_url, ' +
      'trusted_proxies, max_streams, max_streams_per_token, shutdown_grace_sec, webhooks, ' +
      'sessions, cluster, retention. There is no setting "d". The settings are engines, ' +
      'env_passthrough, ' +
      'workspace_instructions, slots, queue_limit, recovery, defaults, silence_notice_sec, ' +
      'workspace_roots, allowed_hosts, public_url, trusted_proxies, max_streams, ' +
      'max_streams_per_token, shutdown_grace_sec, webhooks, sessions, cluster, retention. ' +
      'There is no setting "e". The settings are engines, env_passthrough, ' +
      'workspace_instructions, slots, queue_limit, ' +
      'recovery, defaults, silence_notice_sec, workspace_roots, allowed_hosts, public_url, ' +
      'trusted_proxies, max_streams, max_streams_per_token, shutdown_grace_sec, webhooks, ' +
      'sessions, cluster, retention. And 2 more; list them all: parley config check',
    chinese:
      'config.json：没有“a”这项设置。可用的设置：engines, env_passthrough, ' +
      'workspace_instructions, slots, queue_limit, ' +
      'recovery, defaults, silence_notice_sec, workspace_roots, allowed_hosts, public_url, ' +
      'trusted_proxies, max_streams, max_streams_per_token, shutdown_grace_sec, webhooks, ' +
      'sessions, cluster, retention。没有“b”这项设置。可用的设置：engines, env_passthrough, ' +
      'workspace_instructions, slots, queue_limit, recovery, defaults, silence_notice_sec, workspace_roots, ' +
      'allowed_hosts, public_url, trusted_proxies, max_streams, max_streams_per_token, ' +
      'shutdown_grace_sec, webhooks, sessions, cluster, retention。没有“c”这项设置。' +
      '可用的设置：engines, env_passthrough, ' +
      'workspace_instructions, slots, queue_limit, recovery, defaults, ' +
      'silence_notice_sec, workspace_roots, allowed_hosts, public_url, trusted_proxies, ' +
      'max_streams, max_streams_per_token, shutdown_grace_sec, webhooks, sessions, cluster, ' +
      'retention。没有“d”这项设置。可用的设置：engines, env_passthrough, ' +
      'workspace_instructions, slots, queue_limit, ' +
      'recovery, defaults, silence_notice_sec, workspace_roots, allowed_hosts, public_url, ' +
      'trusted_proxies, max_streams, max_streams_per_token, shutdown_grace_sec, webhooks, ' +
      'sessions, cluster, retention。没有“e”这项设置。可用的设置：engines, env_passthrough, ' +
      'workspace_instructions, slots, queue_limit, recovery, defaults, silence_notice_sec, workspace_roots, ' +
      'allowed_hosts, public_url, trusted_proxies, max_streams, max_streams_per_token, ' +
      'shutdown_grace_sec, webhooks, sessions, cluster, retention。另有 2 个问题；全部列出：' +
      'parley config check',
  },
  {
    kind: 'setting',
    value: [],
    english: 'config.json: The config cannot be an empty list: it takes an object.',
    chinese: 'config.json：配置不能是空列表：应为对象。',
  },
  {
    kind: 'webhook',
    value: { name: 'a', url: 'https://x', secret_env: 'NONE' },
    english: 'Webhook "a": the environment variable NONE has no secret in it.',
    chinese: 'webhook“a”：环境变量 NONE 中没有密钥。',
  },
  {
    kind: 'webhook',
    value: { name: 'a', url: 'https://x', secret_env: 'SHORT' },
    english: 'Webhook "a": the secret in the environment variable SHORT is shorter than 16 bytes.',
    chinese: 'webhook“a”：环境变量 SHORT 中的密钥短于 16 个字节。',
  },
  {
    kind: 'webhook',
    value: { name: 'a', url: 'https://x', secret_env: 'ODD' },
    english: 'Webhook "a": what follows whsec_ in the environment variable ODD is not base64.',
    chinese: 'webhook“a”：环境变量 ODD 中 whsec_ 之后的内容不是 base64。',
  },
  {
    kind: 'webhook',
    value: { name: 'a', url: 'https://x', secret_file: '/no/such/file' },
    english: 'Webhook "a": its secret cannot be read: there is no file /no/such/file.',
    chinese: 'webhook“a”：无法读取它的密钥：没有文件 /no/such/file。',
  },
  {
    kind: 'webhook',
    value: { name: 'a', url: 'https://x', secret_file: '/' },
    english:
      'Webhook "a": its secret cannot be read: / is not a regular file at that place: it is a ' +
      'folder, a link, a pipe or a device, or a link leads to it.',
    chinese: 'webhook“a”：无法读取它的密钥：/ 不是普通文件：它是文件夹、链接、管道或设备，或者有链接指向它。',
  },
  { kind: 'option', value: 5, english: 'runtime_options takes an object.', chinese: 'runtime_options 必须是对象。' },
  {
    kind: 'option',
    value: { idle_timeout_sec: 0 },
    english: 'Runtime option idle_timeout_sec cannot be 0: it takes seconds: a number above 0, at most 3153600000.',
    chinese: '运行时选项 idle_timeout_sec 不能是 0：应为秒数：大于 0，最多 3153600000。',
  },
  {
    kind: 'option',
    value: { turn_timeout_sec: 'long' },
    english:
      'Runtime option turn_timeout_sec cannot be "long": it takes seconds: a number above 0, ' +
      'at most 3153600000, or null for no limit.',
    chinese: '运行时选项 turn_timeout_sec 不能是 "long"：应为秒数：大于 0，最多 3153600000；null 表示不限。',
  },
  {
    kind: 'option',
    value: { max_attempt: 1.5 },
    english: 'Runtime option max_attempt cannot be 1.5: it takes a whole number of at least 1.',
    chinese: '运行时选项 max_attempt 不能是 1.5：应为不小于 1 的整数。',
  },
  {
    kind: 'option',
    value: { auto_decide_policy: 'guess' },
    english: 'Runtime option auto_decide_policy cannot be "guess": it takes "engine_judgement" or "use_default".',
    chinese: '运行时选项 auto_decide_policy 不能是 "guess"：应为 "engine_judgement" 或 "use_default"。',
  },
  {
    kind: 'option',
    value: { interactive_require_user_reply: 'no' },
    english: 'Runtime option interactive_require_user_reply cannot be "no": it takes true or false.',
    chinese: '运行时选项 interactive_require_user_reply 不能是 "no"：应为布尔值（true 或 false）。',
  },
  {
    kind: 'option',
    value: { idle_timeout: 5 },
    english:
      'There is no runtime option "idle_timeout". Did you mean "idle_timeout_sec"? The options ' +
      'are interactive_require_user_reply, session_timeout_sec, auto_decide_policy, ' +
      'max_attempt, turn_timeout_sec, idle_timeout_sec, tool_timeout_sec, silence_notice_sec.',
    chinese:
      '没有运行时选项“idle_timeout”。是不是“idle_timeout_sec”？可用的选项：' +
      'interactive_require_user_reply, session_timeout_sec, auto_decide_policy, max_attempt, ' +
      'turn_timeout_sec, idle_timeout_sec, tool_timeout_sec, silence_notice_sec。',
  },
  {
    kind: 'option',
    value: { nonsense: 5 },
    english:
      'There is no runtime option "nonsense". The options are interactive_require_user_reply, ' +
      'session_timeout_sec, auto_decide_policy, max_attempt, turn_timeout_sec, ' +
      'idle_timeout_sec, tool_timeout_sec, silence_notice_sec.',
    chinese:
      '没有运行时选项“nonsense”。可用的选项：interactive_require_user_reply, ' +
      'session_timeout_sec, auto_decide_policy, max_attempt, turn_timeout_sec, ' +
      'idle_timeout_sec, tool_timeout_sec, silence_notice_sec。',
  },
  {
    kind: 'token',
    value: 'short',
    english:
      'PARLEY_TOKEN is too easy to guess: it has 5 characters, and 32 are the least. Make one: ' +
      'PARLEY_TOKEN=$(openssl rand -hex 32)',
    chinese: 'PARLEY_TOKEN 太容易猜到：只有 5 个字符，至少需要 32 个。请生成一个：PARLEY_TOKEN=$(openssl rand -hex 32)',
  },
  {
    kind: 'token',
    value: 'a'.repeat(40),
    english:
      'PARLEY_TOKEN is too easy to guess: it repeats itself or follows a pattern. Make one: ' +
      'PARLEY_TOKEN=$(openssl rand -hex 32)',
    chinese: 'PARLEY_TOKEN 太容易猜到：内容重复或有规律。请生成一个：PARLEY_TOKEN=$(openssl rand -hex 32)',
  },
  {
    kind: 'token',
    value: 'ä'.repeat(40),
    english:
      'PARLEY_TOKEN is too easy to guess: it may have letters, digits and . _ ~ + / = - only, ' +
      'at most 500. Make one: PARLEY_TOKEN=$(openssl rand -hex 32)',
    chinese:
      'PARLEY_TOKEN 太容易猜到：只能含有字母、数字和 . _ ~ + / = -，最多 500 个。请生成一个：' +
      'PARLEY_TOKEN=$(openssl rand -hex 32)',
  },
  {
    kind: 'schema',
    value: { $async: true },
    english: 'output_schema cannot be used: it uses $async, which Parley does not support.',
    chinese: 'output_schema 无法使用：使用了 Parley 不支持的 $async。',
  },
  {
    kind: 'schema',
    value: { type: 'nonsense' },
    english:
      'output_schema cannot be used: type cannot be "nonsense": it takes "array", "boolean", ' +
      '"integer", "null", "number", "object" or "string". type cannot be "nonsense": it takes ' +
      'a list.',
    chinese:
      'output_schema 无法使用：type 不能是 "nonsense"：应为 "array"、"boolean"、"integer"、' +
      '"null"、"number"、"object" 或 "string"。type 不能是 "nonsense"：应为列表。',
  },
  {
    kind: 'schema',
    value: { pattern: '[' },
    english: 'output_schema cannot be used: one of its patterns is not a regular expression.',
    chinese: 'output_schema 无法使用：其中一个 pattern 不是正则表达式。',
  },
  {
    kind: 'schema',
    value: { $ref: '#/nowhere' },
    english: 'output_schema cannot be used: its $ref "#/nowhere" leads nowhere.',
    chinese: 'output_schema 无法使用：其 $ref "#/nowhere" 没有指向任何内容。',
  },
  {
    kind: 'answer',
    value: [{ required: ['size'] }, {}],
    english: 'The answer does not match the form of the question: "size" is missing.',
    chinese: '回答不符合问题要求的格式：缺少 "size"。',
  },
  {
    kind: 'answer',
    value: [{ properties: { size: { type: ['integer', 'null'] } } }, { size: 'x' }],
    english: 'The answer does not match the form of the question: size cannot be "x": it takes a whole number or null.',
    chinese: '回答不符合问题要求的格式：size 不能是 "x"：应为整数或 null。',
  },
  {
    kind: 'answer',
    value: [{ properties: { sizes: { minItems: 2 } } }, { sizes: [1] }],
    english: 'The answer does not match the form of the question: sizes is too short: it takes at least 2 items.',
    chinese: '回答不符合问题要求的格式：sizes 太短：至少 2 项。',
  },
  {
    kind: 'answer',
    value: [{ properties: { sizes: { uniqueItems: true } } }, { sizes: [1, 1] }],
    english:
      'The answer does not match the form of the question: sizes cannot be a list of 2 items: ' +
      'its items 0 and 1 are the same.',
    chinese: '回答不符合问题要求的格式：sizes 不能是含 2 项的列表：第 0 项与第 1 项相同（从 0 数起）。',
  },
  {
    kind: 'answer',
    value: [{ properties: { name: { maxLength: 2 } } }, { name: 'abc' }],
    english: 'The answer does not match the form of the question: name has 3 characters: the most is 2 characters.',
    chinese: '回答不符合问题要求的格式：name 有 3 个字符：最多 2 个字符。',
  },
  {
    kind: 'answer',
    value: [{ type: 'object' }, null],
    english: 'The answer does not match the form of the question: The answer cannot be null: it takes an object.',
    chinese: '回答不符合问题要求的格式：回答不能是 null：应为对象。',
  },
  {
    kind: 'answer',
    value: [{ properties: { a: {}, b: {} }, additionalProperties: false }, { nonsense: 1 }],
    english: 'The answer does not match the form of the question: There is no "nonsense".',
    chinese: '回答不符合问题要求的格式：没有 "nonsense"。',
  },
  {
    kind: 'answer',
    value: [{ properties: { a: { multipleOf: 5 }, b: { exclusiveMinimum: 0 } } }, { a: 3, b: 0 }],
    english: 'The answer does not match the form of the question: a cannot be 3: it takes a multiple of 5.',
    chinese: '回答不符合问题要求的格式：a 不能是 3：应为 5 的倍数。',
  },
  {
    kind: 'answer',
    value: [{ oneOf: [{ required: ['a'] }, { required: ['b'] }] }, {}],
    english:
      'The answer does not match the form of the question: The answer cannot be an object: it ' +
      'fits none of the forms that it may have (for instance: "a" is missing).',
    chinese: '回答不符合问题要求的格式：回答不能是对象：不符合任何允许的形式（例如：缺少 "a"）。',
  },
  {
    kind: 'answer',
    value: [{ additionalProperties: { type: 'number' } }, Object.fromEntries([...'abcdefgh'].map((key) => [key, key]))],
    english: 'The answer does not match the form of the question: a cannot be "a": it takes a number.',
    chinese: '回答不符合问题要求的格式：a 不能是 "a"：应为数字。',
  },
  {
    kind: 'answer',
    value: [{ enum: Array.from({ length: 14 }, (_, index) => index) }, 99],
    english:
      'The answer does not match the form of the question: The answer cannot be 99: it takes ' +
      '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 or one of 2 others.',
    chinese: '回答不符合问题要求的格式：回答不能是 99：应为 0、1、2、3、4、5、6、7、8、9、10、11 或其他 2 个之一。',
  },
];
