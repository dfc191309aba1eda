// The commands that start, answer and end runs.
import { Option, type Command } from 'commander';
import type { Io } from '../io.js';
import { readVersion } from '../version.js';
import { collect, examples, parseCount, parseText, withJson, type Act } from './shared.js';

export function addRunCommands(program: Command, io: Io, act: Act): void {
  withJson(program.command('run'))
    .summary('start an agent')
    .description(
      'Start an agent and watch it. It works in the current folder. The run is safe whatever happens to this terminal.',
    )
    .argument('<engine>', 'codex, codex-app-server, gemini, opencode, iflow or rehearsal')
    .argument('<prompt>', 'what it is to do; - reads it from stdin')
    .option('-i, --interactive', 'let the agent ask you questions (default in a terminal)')
    .addOption(new Option('--auto', 'run unattended (default without a terminal)').conflicts('interactive'))
    .option('-C, --cwd <dir>', 'the folder it works in (default: this one)')
    .addOption(new Option('--scratch', 'give it an empty folder of its own').conflicts('cwd'))
    .option('-m, --model <name>', 'the model, as the engine calls it', parseText)
    .addOption(
      new Option('-p, --permission <level>', 'what it may do').choices(['read-only', 'workspace-write', 'full']),
    )
    .option('--schema <file>', 'a JSON Schema that the result must fit')
    .option('-o, --option <name=value>', 'a runtime option, for instance session_timeout_sec=3600', collect, [])
    .option('-l, --label <name=value>', 'a label to find it by', collect, [])
    .option('--request-id <key>', 'given again with the same request, it answers the same run', parseText)
    .option('-d, --detach', 'do not watch; print the id of the run')
    .option('--force', 'also if the engine is missing or logged out')
    .addHelpText(
      'after',
      examples(
        'parley run codex "Add a test for the parser"',
        'parley run codex "Fix the lint errors" --auto',
        'parley run gemini - < task.md',
        'parley run opencode "List the TODOs" --json | jq -r .type',
        'parley run codex "Say the version" --schema version.schema.json',
        'parley run rehearsal "[[ask Which?|A|B]][[done {}]]"     plays a script: docs/rehearsal.md',
      ),
    )
    .action((engine, prompt, options) =>
      act(async () => (await import('../conversation/run.js')).runCommand(engine, prompt, options, io)),
    );

  withJson(program.command('reply'))
    .summary('answer a run that waits')
    .description(
      'Answer the question of a run, and watch it to its next stop. Without a text the question is asked here.',
    )
    .argument('<run>', 'its id, the end of it, or last: the newest run that waits')
    .argument('[text]', 'the answer: the text or the number of an option, or your own words; - reads it from stdin')
    .option('--option <number>', 'choose an option by its number, whatever the texts of the options are', parseCount)
    .option('--value <json>', 'the answer to the letter, as JSON')
    .option('--finish', 'end a conversation in which nothing was asked')
    .option('--interaction <id>', 'the question that is meant (default: the pending one)')
    .option('--key <key>', 'a key of your own: the same answer with the same key counts once', parseText)
    .option('-d, --detach', 'do not watch')
    .addHelpText(
      'after',
      examples(
        'parley reply last',
        'parley reply last 2',
        'parley reply 7QZK4M "Neither; use files"',
        `parley reply last --value '{"decision":"approve"}'`,
      ),
    )
    .action((run, text, options) =>
      act(async () => (await import('../conversation/reply.js')).replyCommand(run, text, options, io)),
    );

  withJson(program.command('continue'))
    .summary('go on with an ended run')
    .description('Start a new run in the session of an ended one: the agent remembers what was said.')
    .argument('<run>', 'the ended one')
    .argument('<prompt>', 'what it is to do now; - reads it from stdin')
    .option('-d, --detach', 'do not watch; print the id of the run')
    .option('--force', 'also if the engine is missing or logged out')
    .action((run, prompt, options) =>
      act(async () => (await import('../conversation/run.js')).continueCommand(run, prompt, options, io)),
    );

  withJson(program.command('fork'))
    .summary('begin with a copy of a conversation')
    .description(
      'Start a new run with a copy of what was said in another, which stays as it is: waiting, at work or ended. ' +
        'Codex can.',
    )
    .argument('<run>', 'its id, a part of it, or last')
    .argument('<prompt>', 'what the new one is to do; - reads it from stdin')
    .option('-d, --detach', 'do not watch; print the id of the run')
    .option('--force', 'also if the engine is missing or logged out')
    .action((run, prompt, options) =>
      act(async () => (await import('../conversation/run.js')).forkCommand(run, prompt, options, io)),
    );

  withJson(program.command('retry'))
    .summary('try an ended run again')
    .description('Start it again from its session, with what was said last; from the beginning if it has none.')
    .argument('<run>', 'the ended one')
    .option('-d, --detach', 'do not watch; print the id of the run')
    .option('--force', 'also if the engine is missing or logged out')
    .action((run, options) => act(async () => (await import('../conversation/run.js')).retryCommand(run, options, io)));

  withJson(program.command('cancel'))
    .summary('end a run')
    .description('Cancel a run wherever it is: queued, at work or waiting. Nothing of its agent is left.')
    .argument('<run>', 'its id, a part of it, or last')
    .action((run, options) =>
      act(async () => (await import('../conversation/manage.js')).cancelCommand(run, options, io)),
    );

  withJson(program.command('rm'))
    .summary('delete ended runs')
    .description('Delete ended runs with their events, logs, home, and the folder they had of their own.')
    .argument('<run...>', 'their ids')
    .action((runs, options) =>
      act(async () => (await import('../conversation/manage.js')).removeCommand(runs, options, io)),
    );

  program
    .command('mcp-ask', { hidden: true })
    .description('The question tool as an MCP server on stdin and stdout; engines start it.')
    .requiredOption('--file <path>', 'where the questions are written down')
    .requiredOption('--nonce <word>', 'what marks those of this turn')
    .action((options) =>
      act(async () =>
        (await import('../../ask/ask-server.js')).serveAskTool({ ...options, version: readVersion(), input: io.stdin }),
      ),
    );

  program
    .command('verify-one', { hidden: true })
    .action(() => act(async () => (await import('../serving/verify-child.js')).verifyOneRun(io)));
  program
    .command('work', { hidden: true })
    .action(() => act(async () => (await import('../conversation/worker.js')).work(io)));
}
