// Escapes a person's text for Claude Code, which executes a text that starts with a slash and adds the content of a
// file that is mentioned as @PATH. Changes as little as possible: a space before a leading slash, and a backslash
// before an @ that could name something. The model receives everything else unchanged.

// Where Claude Code looks for a mention: at the start of a word, or behind these marks.
const MENTION = /(?<=^|[\s\u3002\u3001\uFF1F\uFF01])@(\S+)/g;
// Agents, quoted names, folders of a home, and resources of an MCP server.
const ALWAYS = /^(?:agent-|["~])|:/;
// A mention ends at its last letter, digit or underscore. Lines of a file follow its name.
const REST = /\W+$/;
const LINES = /#.*$/;
// Further names in one text are not looked up; they all count as files.
const MOST_LOOKUPS = 200;

export function claudeText(text: string, hasFile: (path: string) => boolean = () => true): string {
  let lookups = 0;
  const couldName = (word: string): boolean => {
    if (ALWAYS.test(word)) return true;
    lookups += 1;
    const path = word.replace(REST, '');
    return lookups > MOST_LOOKUPS || [word, path, path.replace(LINES, '')].some((name) => name !== '' && hasFile(name));
  };
  const escaped = text.replace(MENTION, (mention, word: string) => (couldName(word) ? `\\${mention}` : mention));
  return escaped.startsWith('/') ? ` ${escaped}` : escaped;
}
