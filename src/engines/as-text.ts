// Escapes a person's text for a CLI of the Gemini family, which executes a text that starts with a slash and replaces
// @NAME with the content of the file NAME. Changes as little as possible: a space before a leading slash, and a
// backslash before an @ that could name something. The model receives everything else unchanged.

// How the CLI finds the name after an @; the same expression as in its source.
const AT_NAME = /(?<!\\)@((?:"[^"]*"|\\.|[^ \t\n\r,;!?()[\]{}."\\]|["\\]|\.(?!$|[ \t\n\r]))+)/g;
// Further names in one text are not looked up; they all count as files.
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

// Agents are named by a single word, resources of an MCP server by an address; any other name is a file, if that file
// exists.
function couldName(name: string, hasFile: (path: string) => boolean): boolean {
  if (/^[\w-]+$/.test(name) || name.includes('://')) return true;
  const plain = name.replace(/\\(.)/g, '$1');
  return [name, plain, plain.replaceAll('"', '')].some((path) => path !== '' && hasFile(path));
}
