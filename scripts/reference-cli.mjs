// Renders the command table of commander as Markdown: an overview, then each command with usage, arguments, options and
// examples.
import { renderTable } from './generated-files.mjs';

export function renderCommands(program) {
  const commands = allCommands(program);
  const overview = commands.map(({ path, command }) => [
    `[\`${path}\`](#${path.replaceAll(' ', '-')})`,
    command.summary() || command.description(),
  ]);
  return [renderTable(['command', 'purpose'], overview), ...commands.map(renderCommand)].join('\n\n');
}

// The visible commands in the order of the help; a group such as `token` is followed by its subcommands.
function allCommands(parent, prefix = parent.name()) {
  return parent
    .createHelp()
    .visibleCommands(parent)
    .filter((command) => command.name() !== 'help')
    .flatMap((command) => {
      const path = `${prefix} ${command.name()}`;
      return [{ path, command }].concat(allCommands(command, path));
    });
}

function renderCommand({ path, command }) {
  const help = command.createHelp();
  const parts = [
    `### ${path}`,
    command.description(),
    `\`\`\`text\n${help.commandUsage(command)}\n\`\`\``,
    renderTerms('argument', help.visibleArguments(command), {
      term: (argument) => help.argumentTerm(argument),
      description: (argument) => help.argumentDescription(argument),
    }),
    renderTerms(
      'option',
      help.visibleOptions(command).filter(({ long }) => long !== '--help'),
      { term: ({ flags }) => flags, description: (option) => help.optionDescription(option) },
    ),
    renderExtraHelp(command),
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

function renderTerms(head, items, { term, description }) {
  if (items.length === 0) return '';
  return renderTable(
    [head, 'meaning'],
    items.map((item) => [`\`${term(item)}\``, description(item)]),
  );
}

// The text that a command adds after its help. Commander prints it but does not return it.
function renderExtraHelp(command) {
  let text = '';
  command.configureOutput({ writeOut: (piece) => (text += piece) });
  command.outputHelp();
  const extra = text.slice(command.helpInformation().length).trim();
  const [, examples] = /^Examples:\n([^]*)$/.exec(extra) ?? [];
  return examples === undefined ? extra : `\`\`\`sh\n${examples.replaceAll(/^ {2}/gm, '')}\n\`\`\``;
}
