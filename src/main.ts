#!/usr/bin/env node
// The composition root: the only file that touches the process's own streams, clock and exit code.
import { runCli } from './cli/program.js';
import { systemClock } from './kernel/clock.js';

// A reader that has seen enough (`| head`) closes the pipe: that is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

process.exitCode = await runCli(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  clock: systemClock,
});
