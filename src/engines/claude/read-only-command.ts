// Whether a shell command only seems to read files of its folder, so that nobody has to be asked about it. A guess for
// comfort, not a check: Claude Code checks such a command itself and denies it if it does more.

const READERS = new Set(
  [
    'basename cat cd column comm cut diff dirname du echo file find fold grep egrep fgrep head id jq ls md5sum',
    'nl od pwd readlink realpath seq sha1sum sha256sum stat strings tac tail test tr true uname',
    'wc which whoami',
  ].flatMap((line) => line.split(' ')),
);
const GIT = new Set(['blame', 'describe', 'diff', 'log', 'ls-files', 'rev-parse', 'show', 'status']);
// Redirection, substitution, background commands, variables, and options that write or run something.
const WRITES = /[>`$\\\r]|<\(|(?<!&)&(?!&)|\s-(?:exec|execdir|delete|ok|okdir|fls|fprint\w*)\b|--(?:output|pre)\b/;
const OUTSIDE = /(?:^|[\s="'])(?:~|\/(?!\/)|\.\.(?:\/|\s|$))/;

export function looksReadOnly(command: string): boolean {
  if (command.trim() === '' || WRITES.test(command) || OUTSIDE.test(command)) return false;
  return command.split(/\|\||&&|[|;\n]/).every((part) => {
    const [name = '', next = ''] = part.trim().split(/\s+/);
    return name === 'git' ? GIT.has(next) : READERS.has(name);
  });
}
