// The words of a person for a CLI of the Gemini family, which executes a text that starts with a slash and adds the
// content of what follows an @. Such a text is changed as little as possible: a space in front of the slash, a
// backslash in front of the @ where it could name something. Everything else reaches the model as it was written.

// What the CLI takes for the name behind an @; the same expression as its own.
const AT_NAME = /(?<!\\)@((?:"[^"]*"|\\.|[^ \t\n\r,;!?()[\]{}."\\]|["\\]|\.(?!$|[ \t\n\r]))+)/g;
// More names than that in one text are not lookups up, but all taken for files.
const MOST_LOOKUPS = 200;

export function asText(text: string, hasFile: (path: string) => boolean = () => true): string {
  const isCommand = text.startsWith('/');
  const lookups = new Map<string, boolean>();
  const names = (name: string): boolean => {
    const known = lookups.get(name);
    if (known !== undefined) return known;
    const isNamed = lookups.size >= MOST_LOOKUPS || couldName(name, hasFile);
    if (lookups.size < MOST_LOOKUPS) lookups.set(name, isNamed);
    return isNamed;
  };
  const escaped = text.replace(AT_NAME, (word, name: string) => (names(name) ? `\\${word}` : word));
  return isCommand ? ` ${escaped}` : escaped;
}

// An agent has a single word for its name, a resource of an MCP server an address; anything else is a file, if it is
// there.
function couldName(name: string, hasFile: (path: string) => boolean): boolean {
  if (/^[\w-]+$/.test(name) || name.includes('://')) return true;
  const plain = name.replace(/\\(.)/g, '$1');
  return [name, plain, plain.replaceAll('"', '')].some((path) => path !== '' && hasFile(path));
}
