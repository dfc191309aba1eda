// The command line: which commands there are. Each lives in a file of its own, loaded only when it is called.
import { constants } from 'node:os';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import type { RequestErrorCode } from '../contract/error-codes.js';
import { EXIT, type Io } from './io.js';
import { refusalOf } from './refusal-of.js';
import { readVersion } from './version.js';

// What the caller can do about it, where the message alone does not say.
const ADVICE: Partial<Record<RequestErrorCode, string>> = {
  DATA_DIR_IN_USE: 'ls, show and watch work meanwhile; try again when it is done, or choose another directory with --data',
  DATA_DIR_UNUSABLE: 'parley doctor tells more; another directory is chosen with --data or PARLEY_DATA',
  DATABASE_TOO_NEW: 'nothing was touched: use the Parley that wrote it, or another directory with --data',
  RUN_NOT_ENDED: 'parley reply answers it if it waits, parley cancel ends it',
  UNKNOWN_ENGINE: 'parley doctor tells which of them are installed',
};
const USAGE: ReadonlySet<RequestErrorCode> = new Set(['INVALID_ARGUMENT', 'UNKNOWN_ENGINE']);

type Action = () => Promise<number | void>;

export async function runCli(args: readonly string[], io: Io): Promise<number> {
  let code: number = EXIT.ok;
  const json = args.includes('--json');
  const program = buildProgram(io, json, async (action) => {
    code = (await action()) ?? EXIT.ok;
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return code;
  } catch (error) {
    const tell = (failure: { readonly code: string; readonly message: string }): void => void io.stderr.write(`${JSON.stringify({ error: { code: failure.code, message: failure.message } })}\n`);
    if (error instanceof CommanderError) {
      // Help and version are answers, not mistakes. For people, commander has printed everything by now.
      if (error.exitCode === 0) return EXIT.ok;
      if (json) tell({ code: 'INVALID_ARGUMENT', message: error.message.replace(/^error: /, '') });
      else io.stderr.write(await hintFor(error, args));
      return EXIT.usage;
    }
    const refusal = refusalOf(error);
    if (!refusal) throw error;
    if (json) tell(refusal);
    // Loaded only now: most commands are not refused.
    else io.stderr.write(`parley: ${(await import('../terminal/safe-text.js')).safeText(refusal.message)}\n${ADVICE[refusal.code] === undefined ? '' : `  ${ADVICE[refusal.code]}\n`}`);
    return USAGE.has(refusal.code) ? EXIT.usage : EXIT.failed;
  }
}

// What newcomers most often mean by a line that does not parse.
async function hintFor({ code }: CommanderError, [command = '']: readonly string[]): Promise<string> {
  if (code === 'commander.excessArguments' && command === 'run') return '(the prompt is one argument: put it in quotes)\n';
  if (code !== 'commander.unknownCommand') return '';
  const { ENGINES } = await import('../engines/registry.js');
  return ENGINES.some(({ name }) => name === command) ? `(Did you mean parley run ${command}?)\n` : '';
}

function buildProgram(io: Io, json: boolean, act: (action: Action) => Promise<void>): Command {
  const program = new Command('parley')
    .description('Coding agents as durable conversations: no question is lost, no answer is applied twice, no byte disappears.')
    .version(readVersion(), '-V, --version')
    .configureOutput({ writeOut: (text) => io.stdout.write(text), writeErr: (text) => !json && io.stderr.write(text) })
    .exitOverride();
  addRunCommands(program, io, act);
  addReadCommands(program, io, act);
  addProofCommands(program, io, act);
  addOtherCommands(program, io, act);
  for (const command of program.commands) {
    // Subcommands write and end the way the program does.
    command.copyInheritedSettings(program);
    command.showHelpAfterError(`(parley ${command.name()} --help tells more)`);
  }
  return program
    .showHelpAfterError('(parley --help tells more)')
    .addHelpText('after', examples(
      'parley demo                                      the promise, shown in ten seconds',
      'parley run rehearsal "Set up the storage" -i     a scripted agent that asks, without any account',
      'parley run codex "Why does the build fail?"      in this folder, with the Codex you have',
      'parley ls --status waiting_user                  what waits for you',
      'parley reply last 2                              answers with the second option',
    ) + '\n\nExit codes: 0 succeeded, 1 failed, 2 usage, 3 waiting for an answer, 4 canceled, 130 interrupted (the run goes on).');
}

function examples(...lines: string[]): string {
  return ['', 'Examples:', ...lines.map((line) => `  ${line}`)].join('\n');
}

function withData(command: Command): Command {
  return command.option('--data <dir>', 'the data directory (else PARLEY_DATA, else the one of the user)');
}

function withJson(command: Command): Command {
  return withData(command).option('--json', 'JSON lines for programs');
}

function collect(value: string, before: string[]): string[] {
  return [...before, value];
}

function addRunCommands(program: Command, io: Io, act: (action: Action) => Promise<void>): void {
  withJson(program.command('run'))
    .summary('start an agent')
    .description('Start an agent and watch it. It works in the current folder. The run is safe whatever happens to this terminal.')
    .argument('<engine>', 'codex, codex-app-server, gemini, opencode, iflow or rehearsal')
    .argument('<prompt>', 'what it is to do; - reads it from stdin')
    .option('-i, --interactive', 'the agent may ask; without it, it must do without you')
    .option('-C, --cwd <dir>', 'the folder it works in (default: this one)')
    .addOption(new Option('--scratch', 'give it an empty folder of its own').conflicts('cwd'))
    .option('-m, --model <name>', 'the model, as the engine calls it', parseText)
    .addOption(new Option('-p, --permission <level>', 'what it may do').choices(['read-only', 'workspace-write', 'full']))
    .option('--schema <file>', 'a JSON Schema that the result must fit')
    .option('-o, --option <name=value>', 'a runtime option, for instance session_timeout_sec=3600', collect, [])
    .option('-l, --label <name=value>', 'a label to find it by', collect, [])
    .option('--request-id <key>', 'given again with the same request, it answers the same run', parseText)
    .option('-d, --detach', 'do not watch; print the id of the run')
    .addHelpText('after', examples(
      'parley run codex "Add a test for the parser" -i',
      'parley run gemini - < task.md',
      'parley run opencode "List the TODOs" --json | jq -r .type',
      'parley run codex "Say the version" --schema version.json',
      'parley run rehearsal "[[ask Which?|A|B]][[done {}]]" -i     plays a script: docs/rehearsal.md',
    ))
    .action((engine, prompt, options) => act(async () => (await import('./run.js')).runCommand(engine, prompt, options, io)));

  withJson(program.command('reply'))
    .summary('answer a run that waits')
    .description('Answer the question of a run, and watch it go on to its next stop. Without a text the question is asked here.')
    .argument('<run>', 'its id, a part of it, or last')
    .argument('[text]', 'the answer; a number chooses an option; - reads it from stdin')
    .option('--value <json>', 'the answer to the letter, as JSON')
    .option('--finish', 'end a conversation in which nothing was asked')
    .option('--interaction <id>', 'the question that is meant (default: the pending one)')
    .option('--key <key>', 'a key of your own: the same answer with the same key counts once', parseText)
    .option('-d, --detach', 'do not watch')
    .addHelpText('after', examples('parley reply last', 'parley reply last 2', 'parley reply 7QZK "Neither; use files"', `parley reply last --value '{"decision":"approve"}'`))
    .action((run, text, options) => act(async () => (await import('./reply.js')).replyCommand(run, text, options, io)));

  withJson(program.command('continue'))
    .summary('go on with an ended run')
    .description('Start a new run in the session of an ended one: the agent remembers what was said.')
    .argument('<run>', 'the ended one')
    .argument('<prompt>', 'what it is to do now; - reads it from stdin')
    .option('-d, --detach', 'do not watch; print the id of the run')
    .action((run, prompt, options) => act(async () => (await import('./run.js')).continueCommand(run, prompt, options, io)));

  withJson(program.command('fork'))
    .summary('begin with a copy of a conversation')
    .description('Start a new run with a copy of what was said in another, which stays as it is: waiting, at work or ended. Codex can.')
    .argument('<run>', 'its id, a part of it, or last')
    .argument('<prompt>', 'what the new one is to do; - reads it from stdin')
    .option('-d, --detach', 'do not watch; print the id of the run')
    .action((run, prompt, options) => act(async () => (await import('./run.js')).forkCommand(run, prompt, options, io)));

  withJson(program.command('retry'))
    .summary('try an ended run again')
    .description('Start it again from its session, with what was said last; from the beginning if it has none.')
    .argument('<run>', 'the ended one')
    .option('-d, --detach', 'do not watch; print the id of the run')
    .action((run, options) => act(async () => (await import('./run.js')).retryCommand(run, options, io)));

  withJson(program.command('cancel'))
    .summary('end a run')
    .description('Cancel a run wherever it is: queued, at work or waiting. Nothing of its agent is left.')
    .argument('<run>', 'its id, a part of it, or last')
    .action((run, options) => act(async () => (await import('./manage.js')).cancelCommand(run, options, io)));

  withJson(program.command('rm'))
    .summary('delete ended runs')
    .description('Delete ended runs with their events, logs, home, and the folder they had of their own.')
    .argument('<run...>', 'their ids')
    .action((runs, options) => act(async () => (await import('./manage.js')).removeCommand(runs, options, io)));

  program.command('mcp-ask', { hidden: true })
    .description('The question tool as an MCP server on stdin and stdout; engines start it.')
    .requiredOption('--file <path>', 'where the questions are written down')
    .requiredOption('--nonce <word>', 'what marks those of this turn')
    .action((options) => act(async () => (await import('../ask/ask-server.js')).serveAskTool({ ...options, version: readVersion(), input: io.stdin })));

  program.command('work', { hidden: true }).action(() => act(async () => (await import('./worker.js')).work(io)));
}

function addReadCommands(program: Command, io: Io, act: (action: Action) => Promise<void>): void {
  withJson(program.command('ls'))
    .summary('list runs')
    .description('List runs, newest first.')
    .option('--status <status>', 'queued, running, waiting_user, succeeded, failed or canceled')
    .option('--engine <name>', 'only those of an engine')
    .option('--label <name=value>', 'only those with a label')
    .addOption(new Option('-n, --limit <count>', 'how many').argParser(parseCount).default(50))
    .option('-q, --quiet', 'only the ids')
    .action((options) => act(async () => (await import('./list.js')).listCommand(options, io)));

  withJson(program.command('show'))
    .summary('show a run')
    .description('Show a run: what it is, and its conversation so far.')
    .argument('<run>', 'its id, a part of it, or last')
    .action((run, options) => act(async () => (await import('./show.js')).showCommand(run, options, io)));

  withJson(program.command('watch'))
    .summary('watch a run')
    .description('Watch a run from any point until it has ended. Ctrl-C only ends the watching.')
    .argument('<run>', 'its id, a part of it, or last')
    .addOption(new Option('--cursor <seq>', 'begin after this event').argParser(parseCount).default(0))
    .option('--rasp', 'what was observed (RASP) instead of the conversation, as JSON lines')
    .option('--no-follow', 'only what is stored now')
    .action((run, options) => act(async () => (await import('./show.js')).watchCommand(run, options, io)));

  withData(program.command('logs'))
    .summary("the engine's own bytes")
    .description("Print what the engine printed, byte for byte: of one event, of a range, or of a whole turn.")
    .argument('<run>', 'its id, a part of it, or last')
    .option('--event <seq>', 'the bytes that an observed event was made from', parseCount)
    .option('--attempt <number>', 'of this turn (default: the last)', parseCount)
    .addOption(new Option('--stream <name>', 'which stream').choices(['stdout', 'stderr']).default('stdout'))
    .option('--from <byte>', 'from this byte on', parseCount)
    .option('--to <byte>', 'up to this byte, without it', parseCount)
    .action((run, options) => act(async () => (await import('./audit.js')).logsCommand(run, options, io)));
}

function addProofCommands(program: Command, io: Io, act: (action: Action) => Promise<void>): void {
  withJson(program.command('verify'))
    .summary('prove that nothing was changed')
    .description('Check a stored run: digest, order, form, hashes of the logs, the cover of every byte, the conversation rebuilt.')
    .argument('[run]', 'its id, a part of it, or last')
    .option('--all', 'every run')
    .action((run, options) => act(async () => (await import('./audit.js')).verifyCommand(run, options, io)));

  withJson(program.command('replay'))
    .summary('rebuild the conversation')
    .description('Rebuild the conversation from what was observed, and compare it with the stored one.')
    .argument('<run>', 'its id, a part of it, or last')
    .option('--print', 'print the rebuilt events')
    .action((run, options) => act(async () => (await import('./audit.js')).replayCommand(run, options, io)));

  program.command('parse')
    .summary("read an engine's recorded output")
    .description("Turn an engine's recorded output into events: stdout comes by stdin, one JSON event a line goes out.")
    .option('-e, --engine <name>', 'who printed it: codex, codex-app-server, gemini, iflow, opencode or rehearsal (required)')
    .option('--stderr <file>', "the engine's stderr, if it was recorded")
    .addOption(new Option('--exit <code>', 'how the process ended: an exit code or a signal name').argParser(parseExit).default({ code: 0, signal: null }, '0'))
    .addOption(new Option('--mode <mode>', 'judge as an interactive or an auto run').choices(['interactive', 'auto']).default('interactive'))
    .option('--resumed-from <session>', 'the session id that the turn was to continue', parseText)
    .addOption(new Option('--prompt <text>', 'the prompt of the turn, shown as the first message').default('', 'none'))
    .option('--fcmp', 'print the conversation (FCMP) instead of what was observed (RASP)')
    .addOption(new Option('--stats', "print the parser's counts and the judgement instead of events").conflicts('fcmp'))
    .option('--reproducible', 'fixed times and ids: the same input gives the same bytes')
    .addHelpText('after', examples(
      'codex exec --json "say hello" </dev/null >out.log 2>err.log; code=$?',
      'parley parse --engine codex --stderr err.log --exit $code < out.log',
      'parley parse --engine codex --stderr err.log --exit $code --fcmp < out.log',
      'parley parse --engine codex --stats < out.log',
    ))
    .action((options) => act(async () => (await import('./parse.js')).parseRecording(options, io)));
}

function addOtherCommands(program: Command, io: Io, act: (action: Action) => Promise<void>): void {
  withJson(program.command('serve'))
    .summary('serve the runs over HTTP')
    .description('Serve the runs of a data directory to programs and people, until it is stopped. Prints the link that signs a browser in.')
    .option('--host <address>', 'where to listen', '127.0.0.1')
    .addOption(new Option('--port <number>', 'the port; 0 takes any').argParser(parsePort).default(7717))
    .addOption(new Option('--log-level <level>', 'what is logged to stderr, as JSON lines').choices(['error', 'warn', 'info', 'debug']))
    .addHelpText('after', '\nPARLEY_TOKEN sets the token of the operator; else one is made and kept in the data directory.')
    .action((options) => act(async () => (await import('./serve.js')).serveCommand(options, io)));

  program.command('migrate')
    .summary('prepare a PostgreSQL database')
    .description('Prepare the database that PARLEY_DATABASE_URL names for Parley, or bring it up to date. Several servers may then share it.')
    .action(() => act(async () => (await import('./migrate.js')).migrateCommand(io)));

  withJson(program.command('import'))
    .summary('copy a data directory into PostgreSQL')
    .description('Copy the runs of a data directory into the database of PARLEY_DATABASE_URL. Their files stay; done again, it goes on where it was cut off.')
    .action((options) => act(async () => (await import('./import.js')).importCommand(options, io)));

  const token = program.command('token').summary('who may use the server').description('Tokens for other people and programs. What they allow: viewer looks, replier answers too, operator does everything.');
  withData(token.command('add')).description('Make a token; it is printed once.').argument('<name>', 'whose it is: it stands in what is recorded')
    .addOption(new Option('--role <role>', 'what it allows').choices(['viewer', 'replier', 'operator']).default('replier'))
    .action((name, options) => act(async () => (await import('./token.js')).addTokenCommand(name, options, io)));
  withData(token.command('ls')).description('List the tokens, without what they are.').action((options) => act(async () => (await import('./token.js')).listTokensCommand(options, io)));
  withData(token.command('rm')).description('Take a token back; it counts for nothing from then on.').argument('<name>', 'its name')
    .action((name, options) => act(async () => (await import('./token.js')).removeTokenCommand(name, options, io)));

  withJson(program.command('doctor'))
    .summary('what is there, what is missing')
    .description('Tell which engines are installed, where the data is, and what to do about what is missing.')
    .action((options) => act(async () => (await import('./doctor.js')).doctorCommand(options, io)));

  program.command('demo')
    .summary('see the promise kept')
    .description('Show it for real: a run asks, everything is killed, the question is still there, the answer goes on in a new process.')
    .option('--keep', 'keep the folder, to look around')
    .action((options) => act(async () => (await import('./demo.js')).demoCommand(options, io)));

  program.command('contract')
    .summary('the chart of a run as JSON')
    .description('Print the chart of a run as JSON: states, events and edges with their guards.')
    .option('--sticky', 'with the opt-in edge for engines that stay resident')
    .action((options) => act(async () => (await import('./contract.js')).printContract(options, io)));

  program.command('completion')
    .summary('completion for your shell')
    .description('Print a completion script: eval "$(parley completion bash)", or zsh; parley completion fish | source')
    .argument('<shell>', 'bash, zsh or fish')
    .action((shell) => act(async () => (await import('./completion.js')).printCompletion(shell, program, io)));
}

function parseExit(value: string): { code: number | null; signal: string | null } {
  const signal = value.toUpperCase().replace(/^(?!SIG)/, 'SIG');
  if (Object.hasOwn(constants.signals, signal)) return { code: null, signal };
  const code = Number(value);
  if (!/^\d+$/.test(value) || code > 255) throw new InvalidArgumentError('Give an exit code from 0 to 255, or a signal name such as SIGTERM.');
  return { code, signal: null };
}

function parsePort(value: string): number {
  const port = parseCount(value);
  if (port > 65_535) throw new InvalidArgumentError('A port is at most 65535.');
  return port;
}

function parseCount(value: string): number {
  if (!/^\d{1,15}$/.test(value)) throw new InvalidArgumentError('Give a whole number.');
  return Number(value);
}

function parseText(value: string): string {
  if (value === '') throw new InvalidArgumentError('It must not be empty.');
  return value;
}
