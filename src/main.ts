// The composition root: the only file that touches the process's own streams, clock and exit code.
import { runCli } from './cli/program.js';
import { EXIT } from './cli/io.js';
import { systemClock } from './kernel/clock.js';

// A reader that has seen enough (`| head`) closes the pipe: that is no failure. A full disk is.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') process.stderr.write(`parley: cannot write the output: ${error.message}\n`);
  process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.failed);
});
// Nobody listens: there is nothing left to say.
process.stderr.on('error', () => {});

try {
  process.exitCode = await runCli(process.argv.slice(2), {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    clock: systemClock,
  });
} catch (error) {
  // What the system refused needs a sentence, a defect of ours its stack.
  const refused = error instanceof Error && 'syscall' in error;
  process.stderr.write(refused ? `parley: ${error.message}\n` : `parley: internal error, please report it: ${error instanceof Error ? error.stack : String(error)}\n`);
  process.exitCode = EXIT.failed;
}
