// How text looks on this terminal: colours only for a person who has not said no, and never wider than the screen.
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
    // Read at each print: a window may be resized meanwhile.
    get width() {
      return tty ? Math.max(NARROWEST, io.terminal.columns()) : PLAIN_WIDTH;
    },
  };
}
