// The commands that start, answer and end runs.
import { Option, type Command } from 'commander';
import type { Io } from '../io.js';
import { texts } from '../language/language.js';
import { readVersion } from '../version.js';
import { collect, examples, parseCount, parseText, withJson, type Act } from './shared.js';

export function addRunCommands(program: Command, io: Io, act: Act): void {
  const { help: t } = texts();
  withJson(program.command('run'))
    .summary(t.run.summary)
    .description(t.run.description)
    .argument('<engine>', t.run.engine)
    .argument('<prompt>', t.run.prompt)
    .option('-i, --interactive', t.run.interactive)
    .addOption(new Option('--auto', t.run.auto).conflicts('interactive'))
    .option('-C, --cwd <dir>', t.run.cwd)
    .addOption(new Option('--scratch', t.run.scratch).conflicts('cwd'))
    .option('-m, --model <name>', t.run.model, parseText)
    .addOption(
      new Option('-p, --permission <level>', t.run.permission).choices(['read-only', 'workspace-write', 'full']),
    )
    .option('--schema <file>', t.run.schema)
    .option('-o, --option <name=value>', t.run.option, collect, [])
    .option('-l, --label <name=value>', t.run.label, collect, [])
    .option('--request-id <key>', t.run.requestId, parseText)
    .option('-d, --detach', t.run.detach)
    .option('--force', t.run.force)
    .addHelpText(
      'after',
      examples(
        'parley run codex "Add a test for the parser"',
        'parley run codex "Fix the lint errors" --auto',
        'parley run gemini - < task.md',
        'parley run opencode "List the TODOs" --json | jq -r .type',
        'parley run codex "Say the version" --schema version.schema.json',
        `parley run rehearsal "[[ask Which?|A|B]][[done {}]]"     ${t.run.scriptExample}`,
      ),
    )
    .action((engine, prompt, options) =>
      act(async () => (await import('../conversation/run.js')).runCommand(engine, { ...options, prompt }, io)),
    );

  withJson(program.command('reply'))
    .summary(t.reply.summary)
    .description(t.reply.description)
    .argument('<run>', t.reply.run)
    .argument('[text]', t.reply.text)
    .option('--option <number>', t.reply.option, parseCount)
    .option('--value <json>', t.reply.value)
    .option('--finish', t.reply.finish)
    .option('--interaction <id>', t.reply.interaction)
    .option('--key <key>', t.reply.key, parseText)
    .option('-d, --detach', t.reply.detach)
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
      act(async () => (await import('../conversation/reply.js')).replyCommand(run, { ...options, text }, io)),
    );

  withJson(program.command('continue'))
    .summary(t.continue.summary)
    .description(t.continue.description)
    .argument('<run>', t.continue.run)
    .argument('<prompt>', t.continue.prompt)
    .option('-d, --detach', t.continue.detach)
    .option('--force', t.continue.force)
    .action((run, prompt, options) =>
      act(async () => (await import('../conversation/run.js')).continueCommand(run, { ...options, prompt }, io)),
    );

  withJson(program.command('fork'))
    .summary(t.fork.summary)
    .description(t.fork.description)
    .argument('<run>', t.fork.run)
    .argument('<prompt>', t.fork.prompt)
    .option('-d, --detach', t.fork.detach)
    .option('--force', t.fork.force)
    .action((run, prompt, options) =>
      act(async () => (await import('../conversation/run.js')).forkCommand(run, { ...options, prompt }, io)),
    );

  withJson(program.command('retry'))
    .summary(t.retry.summary)
    .description(t.retry.description)
    .argument('<run>', t.retry.run)
    .option('-d, --detach', t.retry.detach)
    .option('--force', t.retry.force)
    .action((run, options) => act(async () => (await import('../conversation/run.js')).retryCommand(run, options, io)));

  withJson(program.command('cancel'))
    .summary(t.cancel.summary)
    .description(t.cancel.description)
    .argument('<run>', t.cancel.run)
    .action((run, options) =>
      act(async () => (await import('../conversation/manage.js')).cancelCommand(run, options, io)),
    );

  withJson(program.command('rm'))
    .summary(t.rm.summary)
    .description(t.rm.description)
    .argument('<run...>', t.rm.run)
    .action((runs, options) =>
      act(async () => (await import('../conversation/manage.js')).removeCommand(runs, options, io)),
    );

  program
    .command('mcp-ask', { hidden: true })
    .description('Serve the question tool as an MCP server on stdin and stdout; engines start it.')
    .requiredOption('--file <path>', 'file for the questions')
    .requiredOption('--nonce <word>', 'marks the questions of this turn')
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
