// Loaded into every Node that a test starts (--import). In the process of an engine, which carries the mark of its
// turn, it writes down that the process began and all that it is told, a JSON object a line in the file ENGINE_TRACE.
// Nothing of Parley has a hand in it.
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
