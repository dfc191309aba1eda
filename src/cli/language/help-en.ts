// The English texts of help: commands, arguments, options, and messages about wrong arguments. help-zh-cn.ts has the
// same keys.

const RUN_REF = 'run id, its last 6 or more characters, or "last"';
const DETACH = 'print the id of the run instead of watching it';
const FORCE = 'start even if the engine is missing or logged out';
const LIMIT = 'how many to show';

export const HELP = {
  about: 'Coding agents as durable conversations: no question is lost, no answer is applied twice, no byte disappears.',
  headings: {
    'Usage:': 'Usage:',
    'Arguments:': 'Arguments:',
    'Options:': 'Options:',
    'Commands:': 'Commands:',
  } as Readonly<Record<string, string>>,
  // Names for the parts of a usage line.
  placeholders: { '[options]': '[options]', '[command]': '[command]' } as Readonly<Record<string, string>>,
  optionFacts: (description: string, facts: string) => `${description} (${facts})`,
  and: ', ',
  // Wraps help to a width; null for the parser's own way, which breaks lines at spaces only.
  wrap: null as ((text: string, width: number) => string) | null,
  version: 'print the version',
  helpOption: 'show this help',
  helpCommand: 'show help for a command',
  choices: (list: string) => `choices: ${list}`,
  default: (value: string) => `default: ${value}`,
  examples: 'Examples:',
  exitCodes:
    'Exit codes: 0 succeeded, 1 failed, 2 usage, 3 waiting for you, 4 canceled,\n130 interrupted (the run continues).',
  seeHelp: (command: string) => `Run \`${command} --help\` for usage.`,
  quotePrompt: '(The prompt is one argument: put it in quotes.)',
  didYouMean: (command: string) => `(Did you mean ${command}?)`,
  programExamples: {
    demo: 'survive a kill of everything',
    rehearsal: 'a scripted agent, no account',
    codex: 'Codex works in this folder',
    inbox: 'list questions, answer by number',
    reply: 'answer with the second option',
  },
  data: 'data directory (default: $PARLEY_DATA or the data directory of the user)',
  json: 'print JSON lines for programs',
  run: {
    summary: 'start an agent',
    description:
      'Start an agent in the current folder and watch it. The run continues even if this terminal is closed.',
    engine: 'claude, codex, codex-app-server, gemini, opencode, iflow or rehearsal',
    prompt: 'the task; - reads it from stdin',
    interactive: 'let the agent ask you questions (default in a terminal, unless defaults.mode is set)',
    auto: 'run unattended (default without a terminal, unless defaults.mode is set)',
    cwd: 'working folder of the agent (default: the current one)',
    scratch: 'work in a new, empty folder',
    model: 'model name, as the engine calls it',
    permission: 'what the agent may do',
    schema: 'JSON Schema that the result must match',
    option: 'runtime option, such as session_timeout_sec=3600',
    label: 'label to find the run by',
    requestId: 'idempotency key: repeating the request returns the same run',
    scriptExample: 'runs a script',
    detach: DETACH,
    force: FORCE,
  },
  reply: {
    summary: 'answer a run that is waiting for you',
    description:
      'Answer the question of a run and watch it until it waits again or ends. Without a text, asks you in this ' +
      'terminal.',
    run: 'run id, the end of it, or "last": the newest run that is waiting for you',
    text: 'the answer: the text or number of an option, or your own words; - reads it from stdin',
    option: 'choose an option by its number, whatever its text is',
    value: 'the exact answer as JSON',
    finish: 'end a conversation that has no open question',
    interaction: 'id of the question to answer (default: the open one)',
    key: 'idempotency key: the same answer with the same key applies once',
    detach: 'do not watch the run',
  },
  continue: {
    summary: 'follow up on an ended run',
    description: 'Start a new run in the session of an ended one: the agent remembers the conversation.',
    run: 'id of the ended run',
    prompt: 'what to do next; - reads it from stdin',
    detach: DETACH,
    force: FORCE,
  },
  fork: {
    summary: 'start from a copy of a conversation',
    description:
      'Start a new run with a copy of the conversation of another run, which does not change. ' +
      'Claude Code and Codex support this.',
    run: RUN_REF,
    prompt: 'task of the new run; - reads it from stdin',
    detach: DETACH,
    force: FORCE,
  },
  retry: {
    summary: 'retry an ended run',
    description: 'Repeat the last turn of an ended run in its session; without a session, from the beginning.',
    run: 'id of the ended run',
    detach: DETACH,
    force: FORCE,
  },
  cancel: {
    summary: 'stop a run',
    description: 'Cancel a queued, running or waiting run and stop every process of its agent.',
    run: RUN_REF,
  },
  rm: {
    summary: 'delete ended runs',
    description: 'Delete ended runs with their events, logs, home and scratch folder.',
    run: 'ids of the runs',
  },
  ls: {
    summary: 'list runs',
    description: 'List runs, newest first.',
    status: 'only this status: queued, running, waiting_user, succeeded, failed or canceled',
    engine: 'only runs of this engine',
    label: 'only runs with this label',
    limit: LIMIT,
    quiet: 'print only the ids',
  },
  inbox: {
    summary: 'list and answer open questions',
    description:
      'List the questions that are waiting for you, oldest first. In a terminal, type a number to answer one.',
    number: 'answer this question right away',
    limit: LIMIT,
  },
  show: {
    summary: 'show a run',
    description: 'Show a run and its conversation so far.',
    run: RUN_REF,
    details: "include the engine's own output and warnings, line by line",
  },
  watch: {
    summary: 'watch a run',
    description: 'Watch a run until it has ended. Ctrl-C stops watching; the run continues.',
    run: RUN_REF,
    cursor: 'start after this event',
    rasp: 'print observed events (RASP) as JSON lines instead of the conversation',
    noFollow: 'print only the stored events, then exit',
  },
  logs: {
    summary: "print the engine's raw output",
    description:
      "Print the engine's output of one event, of a byte range, or of a whole turn. On a terminal, control and " +
      'invisible characters are shown by name; a pipe gets the bytes.',
    run: RUN_REF,
    event: 'print the bytes of this observed event',
    turn: 'number of the turn (default: the last)',
    stream: 'which stream',
    from: 'first byte',
    to: 'end before this byte',
    raw: 'write the bytes unchanged, even to a terminal, which obeys them',
  },
  verify: {
    summary: 'check that nothing recorded was altered',
    description:
      'Check a stored run: digest, order and form of events, hashes of the logs, byte coverage, and the rebuilt ' +
      'conversation.',
    run: RUN_REF,
    all: 'check every run and print a summary',
  },
  replay: {
    summary: 'rebuild the conversation',
    description: 'Rebuild the conversation from the observed events and compare it with the stored one.',
    run: RUN_REF,
    print: 'print the rebuilt events',
  },
  parse: {
    summary: "parse an engine's recorded output",
    description:
      "Convert an engine's recorded output to events: reads stdout of the engine on stdin, prints one JSON event " +
      'per line.',
    engine: 'engine that printed it: claude, codex, codex-app-server, gemini, iflow, opencode or rehearsal (required)',
    stderr: "file with the engine's stderr, if it was recorded",
    exit: 'how the process ended: an exit code or a signal name',
    mode: 'judge as an interactive or an auto run',
    resumedFrom: 'session id that the turn was to continue',
    prompt: 'prompt of the turn, shown as the first message',
    noPrompt: 'none',
    fcmp: 'print the conversation (FCMP) instead of observed events (RASP)',
    stats: "print the parser's counts and the judgement instead of events",
    reproducible: 'use fixed times and ids: the same input gives the same bytes',
  },
  serve: {
    summary: 'serve runs over HTTP',
    description:
      'Serve the runs of a data directory to programs and people until it is stopped. Prints a link that signs a ' +
      'browser in.',
    host: 'address to listen on',
    port: 'port; 0 chooses a free one',
    logLevel: 'level of the log on stderr (JSON lines)',
    after: 'PARLEY_TOKEN sets the operator token; otherwise a token is created\nand kept in the data directory.',
  },
  open: {
    summary: 'open the console in a browser',
    description:
      'Open the console of the running server in the browser. Prints its address if no browser can be opened.',
  },
  migrate: {
    summary: 'prepare a PostgreSQL database',
    description:
      'Prepare the database of PARLEY_DATABASE_URL for Parley, or update it. Several servers can then share it.',
  },
  import: {
    summary: 'copy a data directory into PostgreSQL',
    description:
      'Copy the runs of a data directory into the database of PARLEY_DATABASE_URL. Their files stay. Run it ' +
      'again after an interruption: it continues.',
  },
  compact: {
    summary: 'make the database smaller',
    description:
      'Make the database of a data directory as small as possible: packs all journals and removes free space. Needs ' +
      'the directory for itself (stop the server before), and up to twice the size of the database as free disk space.',
  },
  config: {
    summary: 'show and change settings',
    description: 'Show and change the settings in config.json of the data directory.',
    list:
      'List every setting with its value, its origin (the default, config.json or an environment variable) and ' +
      'whether a running server applies a change.',
    get: 'Print the value of one setting as JSON.',
    set: 'Change one setting in config.json. The value is JSON or plain text.',
    unset: 'Remove one setting from config.json, so that its default applies again.',
    check: 'Check config.json without starting anything, and list all problems.',
    name: 'name of the setting',
    value: 'new value',
  },
  doctor: {
    summary: 'check your setup',
    description: 'Check your setup: engines, logins, data directory and damage, and how to fix problems.',
    full: 'check the whole database and every run with its files, like verify --all; may take minutes',
    recount: 'first count the totals of the metrics again from the stored runs (stop the server before)',
  },
  demo: {
    summary: 'kill everything mid-run and watch it recover',
    description:
      'Watch a real recovery: a run asks, everything is killed, the question is still there, and the answer ' +
      'continues the run in a new process.',
    keep: 'keep the folder, to look around',
  },
  contract: {
    summary: 'print the chart of a run',
    description: 'Print the chart of a run as JSON: states, events and edges with their guards.',
    optIn: 'include the opt-in edge for resident engines',
  },
  completion: {
    summary: 'set up shell completion',
    description: 'Print a completion script: eval "$(parley completion bash)", or zsh; parley completion fish | source',
    shell: 'bash, zsh or fish',
  },
  token: {
    summary: 'manage access tokens',
    description:
      'Manage the tokens of people and programs, and signed-in browsers. Roles: viewer reads, replier also ' +
      'answers, operator does everything.',
    name: 'name of the token',
    add: 'Create a token. It is printed once.',
    role: 'what the token allows',
    person: 'owner of the token, for journals (default: its name); a person may have several',
    expires: 'how long it is valid, such as 90d or 12h (default: no limit)',
    ls: 'List tokens with their expiry and last use, without their values.',
    rotate:
      'Replace the value of a token. The old value and its sessions end immediately; a server need not be restarted.',
    operator: 'rotate the operator token',
    rotateExpires: 'how long the new value is valid (default: as before)',
    rm: 'Revoke a token immediately. Its sessions end with it.',
    sessions: 'List signed-in browsers, or sign one out.',
    end: 'end this session',
  },
  link: {
    summary: 'sign in a browser or phone',
    description:
      'Print a link that signs one browser in, once; in a terminal also as a QR code. Needs a running server.',
    as: 'sign in with this named token (default: as the operator)',
    expires: 'how long the link is valid, 10s to 24h (default: 10m)',
  },
  audit: {
    summary: 'read the administrative journal',
    description:
      'Show sign-ins, token changes, deletions, settings changes and downloads; or check that no row was altered.',
    limit: 'how many of the newest rows to show',
    all: 'show every row',
    after: 'show rows after this one',
    verify: 'check that no row was changed, removed or reordered',
  },
  webhook: {
    summary: 'test a webhook',
    description: 'Test the webhooks of config.json.',
    test: 'Send a signed test delivery to a webhook and report the result.',
    name: 'its name in config.json',
  },
  badDuration: 'Give a number and a unit: s, m, h, d or w; for instance 90d. At most ten years.',
  badLinkDuration: 'Give a time from 10s to 24h.',
  badExit: 'Give an exit code from 0 to 255, or a signal name such as SIGTERM.',
  badPort: 'A port is at most 65535.',
  badCount: 'Give a whole number.',
  badPositive: 'Give a whole number above 0.',
  empty: 'It must not be empty.',
};
