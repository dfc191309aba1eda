// Loaded into every Node process of a test (--import). In the process of an engine, which carries the mark of its turn,
// it records the start of the process and all its input, one JSON object per line, in the file ENGINE_TRACE.
// Independent of Parley.
import { appendFileSync } from 'node:fs';

const { PARLEY_TURN: turn, ENGINE_TRACE: file } = process.env;

if (turn && file) {
  const note = (line) => appendFileSync(file, `${JSON.stringify({ turn, pid: process.pid, ...line })}\n`);
  note({ began: process.argv.slice(2) });
  const { stdin } = process;
  const push = stdin.push;
  stdin.push = function pushNoted(chunk, encoding) {
    if (chunk !== null) note({ input: chunk.toString('utf8') });
    return push.call(this, chunk, encoding);
  };
}
