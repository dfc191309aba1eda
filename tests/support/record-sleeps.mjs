// Preloaded into a program: its pauses end at once, and PARLEY_TEST_SLEEPS names the file that gets their lengths in
// milliseconds, one per line.
import { appendFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';

timers.setTimeout = async (ms) => appendFileSync(process.env['PARLEY_TEST_SLEEPS'], `${ms}\n`);
syncBuiltinESMExports();
