// The server, databases, setup and shell completion.
import { Option, type Command } from 'commander';
import type { Io } from '../io.js';
import { parsePort, withData, withJson, type Act } from './shared.js';

export function addOtherCommands(program: Command, io: Io, act: Act): void {
  withJson(program.command('serve'))
    .summary('serve the runs over HTTP')
    .description(
      'Serve the runs of a data directory to programs and people, until it is stopped. Prints the link that signs ' +
        'a browser in.',
    )
    .option('--host <address>', 'where to listen', '127.0.0.1')
    .addOption(new Option('--port <number>', 'the port; 0 takes any').argParser(parsePort).default(7717))
    .addOption(
      new Option('--log-level <level>', 'what is logged to stderr, as JSON lines').choices([
        'error',
        'warn',
        'info',
        'debug',
      ]),
    )
    .addHelpText(
      'after',
      '\nPARLEY_TOKEN sets the token of the operator; else one is made and kept in the data directory.',
    )
    .action((options) => act(async () => (await import('../serving/serve.js')).serveCommand(options, io)));

  withData(program.command('open'))
    .summary('open the console in a browser')
    .description('Open the console of the running server in the browser. Prints its address where there is none.')
    .action((options) => act(async () => (await import('../serving/open.js')).openCommand(options, io)));

  program
    .command('migrate')
    .summary('prepare a PostgreSQL database')
    .description(
      'Prepare the database that PARLEY_DATABASE_URL names for Parley, or bring it up to date. Several servers ' +
        'may then share it.',
    )
    .action(() => act(async () => (await import('../administration/migrate.js')).migrateCommand(io)));

  withJson(program.command('import'))
    .summary('copy a data directory into PostgreSQL')
    .description(
      'Copy the runs of a data directory into the database of PARLEY_DATABASE_URL. Their files stay; done again, ' +
        'it goes on where it was cut off.',
    )
    .action((options) => act(async () => (await import('../administration/import.js')).importCommand(options, io)));

  withJson(program.command('doctor'))
    .summary('what is there, what is missing')
    .description(
      'Tell which engines are installed, where the data is, whether it is damaged, and what to do about what is ' +
        'missing.',
    )
    .option(
      '--full',
      'check the whole database and every run with its files, as verify --all does; takes minutes if there is much',
    )
    .action((options) => act(async () => (await import('../administration/doctor.js')).doctorCommand(options, io)));

  program
    .command('demo')
    .summary('see the promise kept')
    .description(
      'Show it for real: a run asks, everything is killed, the question is still there, the answer goes on in a ' +
        'new process.',
    )
    .option('--keep', 'keep the folder, to look around')
    .action((options) => act(async () => (await import('../administration/demo.js')).demoCommand(options, io)));

  program
    .command('contract')
    .summary('the chart of a run as JSON')
    .description('Print the chart of a run as JSON: states, events and edges with their guards.')
    .option('--sticky', 'with the opt-in edge for engines that stay resident')
    .action((options) => act(async () => (await import('../contract.js')).printContract(options, io)));

  program
    .command('completion')
    .summary('completion for your shell')
    .description('Print a completion script: eval "$(parley completion bash)", or zsh; parley completion fish | source')
    .argument('<shell>', 'bash, zsh or fish')
    .action((shell) => act(async () => (await import('../completion.js')).printCompletion(shell, program, io)));
}
