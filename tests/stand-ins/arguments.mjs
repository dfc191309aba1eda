// Reads a command line strictly: a stand-in refuses the options that its CLI refuses.

// Thrown to end before the turn starts: nothing on stdout, these lines on stderr, this exit code.
export class Refusal extends Error {
  constructor(code, ...lines) {
    super(lines.join('\n'));
    this.code = code;
  }
}

// `known` maps each spelling to [name, takes a value]. Ends at the word for which `stopAt` is true; the following words
// are `rest`.
export function readOptions(argv, known, { unknown, missing, stopAt = () => false }) {
  const options = {};
  const words = [];
  for (let at = 0; at < argv.length; at += 1) {
    const part = argv[at];
    if (part === '--') {
      words.push(...argv.slice(at + 1));
      break;
    }
    if (part === '-' || !part.startsWith('-')) {
      if (stopAt(part)) return { options, words, rest: argv.slice(at) };
      words.push(part);
      continue;
    }
    const equals = part.startsWith('--') ? part.indexOf('=') : -1;
    const flag = equals < 0 ? part : part.slice(0, equals);
    const rule = known[flag];
    if (!rule) throw unknown(flag);
    const [name, takesValue] = rule;
    if (!takesValue) options[name] = true;
    else if (equals >= 0) options[name] = part.slice(equals + 1);
    else {
      at += 1;
      // A word with a leading dash is the next option, never a value.
      if (argv[at] === undefined || /^-./.test(argv[at])) throw missing(flag);
      options[name] = argv[at];
    }
  }
  return { options, words, rest: [] };
}
