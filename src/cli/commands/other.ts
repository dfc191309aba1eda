// The server, databases, setup and shell completion.
import { Option, type Command } from 'commander';
import type { Io } from '../io.js';
import { texts } from '../language/language.js';
import { examples, parsePort, withData, withJson, type Act } from './shared.js';

export function addOtherCommands(program: Command, io: Io, act: Act): void {
  const { help: t } = texts();
  withJson(program.command('serve'))
    .summary(t.serve.summary)
    .description(t.serve.description)
    .option('--host <address>', t.serve.host, '127.0.0.1')
    .addOption(new Option('--port <number>', t.serve.port).argParser(parsePort).default(7717))
    .addOption(new Option('--log-level <level>', t.serve.logLevel).choices(['error', 'warn', 'info', 'debug']))
    .addHelpText('after', `\n${t.serve.after}`)
    .action((options) => act(async () => (await import('../serving/serve.js')).serveCommand(options, io)));

  withData(program.command('open'))
    .summary(t.open.summary)
    .description(t.open.description)
    .action((options) => act(async () => (await import('../serving/open.js')).openCommand(options, io)));

  program
    .command('migrate')
    .summary(t.migrate.summary)
    .description(t.migrate.description)
    .action(() => act(async () => (await import('../administration/migrate.js')).migrateCommand(io)));

  withJson(program.command('import'))
    .summary(t.import.summary)
    .description(t.import.description)
    .action((options) => act(async () => (await import('../administration/import.js')).importCommand(options, io)));

  withJson(program.command('compact'))
    .summary(t.compact.summary)
    .description(t.compact.description)
    .action((options) => act(async () => (await import('../administration/compact.js')).compactCommand(options, io)));

  const config = program
    .command('config')
    .summary(t.config.summary)
    .description(t.config.description)
    .addHelpText(
      'after',
      examples(
        'parley config',
        'parley config get sessions.park_after_sec',
        'parley config set slots 4',
        'parley config set defaults.model.codex gpt-5.2-codex',
        'parley config set workspace_roots \'["/home/anna/work"]\'',
        'parley config unset slots',
      ),
    );
  withJson(config.command('list', { isDefault: true }))
    .description(t.config.list)
    // A misspelled command of config arrives here.
    .argument('[command]')
    .action((name, options) =>
      act(async () => (await import('../administration/config.js')).listSettingsCommand({ ...options, name }, io)),
    );
  withJson(config.command('get'))
    .description(t.config.get)
    .argument('<name>', t.config.name)
    .action((name, options) =>
      act(async () => (await import('../administration/config.js')).getSettingCommand(name, options, io)),
    );
  withData(config.command('set'))
    .description(t.config.set)
    .argument('<name>', t.config.name)
    .argument('<value>', t.config.value)
    .action((name, text, options) =>
      act(async () => (await import('../administration/config.js')).setSettingCommand(name, { ...options, text }, io)),
    );
  withData(config.command('unset'))
    .description(t.config.unset)
    .argument('<name>', t.config.name)
    .action((name, options) =>
      act(async () =>
        (await import('../administration/config.js')).setSettingCommand(name, { ...options, text: null }, io),
      ),
    );
  withData(config.command('check'))
    .description(t.config.check)
    .action((options) =>
      act(async () => (await import('../administration/config.js')).checkSettingsCommand(options, io)),
    );

  withJson(program.command('doctor'))
    .summary(t.doctor.summary)
    .description(t.doctor.description)
    .option('--full', t.doctor.full)
    .option('--recount', t.doctor.recount)
    .action((options) => act(async () => (await import('../administration/doctor.js')).doctorCommand(options, io)));

  program
    .command('demo')
    .summary(t.demo.summary)
    .description(t.demo.description)
    .option('--keep', t.demo.keep)
    .action((options) => act(async () => (await import('../administration/demo.js')).demoCommand(options, io)));

  program
    .command('contract')
    .summary(t.contract.summary)
    .description(t.contract.description)
    .option('--sticky', t.contract.optIn)
    .action((options) => act(async () => (await import('../contract.js')).printContract(options, io)));

  program
    .command('completion')
    .summary(t.completion.summary)
    .description(t.completion.description)
    .argument('<shell>', t.completion.shell)
    .action((shell) => act(async () => (await import('../completion.js')).printCompletion(shell, program, io)));
}
