// The style of output on this terminal: colour only on a terminal without NO_COLOR, and never wider than the screen.
import type { Style } from '../terminal/style.js';
import type { Io } from './io.js';

const PLAIN_WIDTH = 100;
const NARROWEST = 20;

export function styleOf(io: Io, stream: 'stdout' | 'stderr' = 'stdout'): Style {
  const tty = io.terminal[stream];
  const { NO_COLOR: no, FORCE_COLOR: force, TERM: term } = io.env;
  const wanted = force !== undefined && force !== '' && force !== '0' ? true : tty && term !== 'dumb';
  return {
    colour: wanted && (no === undefined || no === ''),
    // Read at each print, because the window may be resized.
    get width() {
      return tty ? Math.max(NARROWEST, io.terminal.columns()) : PLAIN_WIDTH;
    },
  };
}
