// The command table: every command with its arguments, options and help. The code of a command is loaded only when it
// runs. docs/reference/cli.md is generated from this table.
import { Command, type HelpConfiguration, type Option } from 'commander';
import { safeText } from '../terminal/safe-text.js';
import { textWidth } from '../terminal/text-width.js';
import { addAccessCommands } from './commands/access.js';
import { addOtherCommands } from './commands/other.js';
import { addProofCommands } from './commands/proof.js';
import { addReadCommands } from './commands/read.js';
import { addRunCommands } from './commands/run.js';
import { examples, type Act } from './commands/shared.js';
import type { Io } from './io.js';
import { explainRefusal, texts } from './language/language.js';
import { explainUsage } from './usage-error.js';
import { readVersion } from './version.js';

interface ProgramOptions {
  // Whether commander prints its errors to stderr; with --json the caller prints them as JSON.
  readonly printErrors: boolean;
  readonly act: Act;
}

export function buildProgram(io: Io, { printErrors, act }: ProgramOptions): Command {
  const { help: t } = texts();
  const program = new Command('parley')
    .description(t.about)
    .version(readVersion(), '-V, --version', t.version)
    .helpOption('-h, --help', t.helpOption)
    .helpCommand('help [command]', t.helpCommand)
    .configureHelp(helpStyle())
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => printErrors && io.stderr.write(text),
      outputError: (text, write) => {
        const mistake = explainUsage(text);
        write(mistake === null ? text : `parley: ${safeText(explainRefusal(mistake).message)}\n`);
      },
    })
    .exitOverride();
  addRunCommands(program, io, act);
  addReadCommands(program, io, act);
  addProofCommands(program, io, act);
  addOtherCommands(program, io, act);
  addAccessCommands(program, io, act);
  for (const command of program.commands) {
    // Subcommands use the output and the exit handling of the program.
    command.copyInheritedSettings(program);
    command.showHelpAfterError(t.seeHelp(`parley ${command.name()}`));
    if (command.commands.length > 0) command.helpCommand('help [command]', t.helpCommand);
    for (const inner of command.commands)
      inner.showHelpAfterError(t.seeHelp(`parley ${command.name()} ${inner.name()}`));
  }
  const { demo, rehearsal, codex, inbox, reply } = t.programExamples;
  const lines = examples(
    `parley demo                                   ${demo}`,
    `parley run rehearsal "Set up the storage"     ${rehearsal}`,
    `parley run codex "Why does the build fail?"   ${codex}`,
    `parley inbox                                  ${inbox}`,
    `parley reply last 2                           ${reply}`,
  );
  return program.showHelpAfterError(t.seeHelp('parley')).addHelpText('after', `${lines}\n\n${t.exitCodes}`);
}

// Help in the chosen language. A Chinese character takes two columns.
function helpStyle(): HelpConfiguration {
  const { help: t } = texts();
  return {
    styleTitle: (title) => t.headings[title] ?? title,
    displayWidth: textWidth,
    styleOptionText: (text) => t.placeholders[text] ?? text,
    styleSubcommandText: (text) => t.placeholders[text] ?? text,
    optionDescription: (option) => describeOption(option),
    ...(t.wrap === null ? {} : { boxWrap: t.wrap }),
  };
}

// Like commander's own description, with its words from the catalogue.
function describeOption({ description, argChoices, defaultValue, defaultValueDescription, ...option }: Option): string {
  const { help: t } = texts();
  const hasDefault = defaultValue !== undefined && (option.required || option.optional);
  const facts = [
    ...(argChoices ? [t.choices(argChoices.map((choice) => JSON.stringify(choice)).join(', '))] : []),
    ...(hasDefault ? [t.default(defaultValueDescription || JSON.stringify(defaultValue))] : []),
  ];
  return facts.length === 0 ? description : t.optionFacts(description, facts.join(t.and));
}
