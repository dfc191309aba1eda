// Reads a stream of server-sent events like a client that wants to keep up: counts frames by their ids without creating
// strings, and reports missing and repeated ids.
import { get } from 'node:http';

const LF = 0x0a;
const ZERO = 0x30;

// Resolves with the counts when the stream has ended or `onFrame` has returned true. onFrame(id, bytes) receives each
// id once, with the frame without its empty line; true stops the reading. `after`: the id before the first expected
// one, if it is known.
export function readFrames(
  url,
  { headers = {}, agent, after = null, onFrame = () => false, onOpen = () => {}, pace, signal } = {},
) {
  return new Promise((resolve, reject) => {
    let request = null;
    const finish = () => {
      request.destroy();
      resolve(seen);
    };
    const seen = { frames: 0, last: after, missing: 0, twice: 0, over: false };
    let rest = null;
    request = get(url, { headers: { accept: 'text/event-stream', ...headers }, agent }, (response) => {
      if (response.statusCode !== 200) return reject(new Error(`${url} answered ${response.statusCode}`));
      onOpen();
      signal?.addEventListener('abort', finish);
      response.on('data', (chunk) => {
        const bytes = rest ? Buffer.concat([rest, chunk]) : chunk;
        let at = 0;
        for (let end = bytes.indexOf('\n\n', at); end >= 0; end = bytes.indexOf('\n\n', at)) {
          const frame = bytes.subarray(at, end);
          at = end + 2;
          const id = idOf(frame);
          if (id === null) {
            if (frame.indexOf('event: end') !== 0) continue;
            seen.over = true;
            seen.missing += JSON.parse(frame.subarray(frame.indexOf('data: ') + 6).toString()).seq - seen.last;
            continue;
          }
          if (seen.last !== null && id <= seen.last) {
            seen.twice += 1;
            continue;
          }
          seen.frames += 1;
          if (seen.last !== null) seen.missing += id - seen.last - 1;
          seen.last = id;
          if (onFrame(id, frame) === true) return finish();
        }
        rest = at < bytes.length ? bytes.subarray(at) : null;
        pace?.(response, seen);
      });
      response.on('end', () => resolve(seen));
      response.on('error', (error) => (error.code === 'ECONNRESET' ? resolve(seen) : reject(error)));
    });
    request.on('error', reject);
  });
}

// `id: 17` at the beginning of a line of the frame.
function idOf(frame) {
  let at = frame.indexOf('id: ');
  while (at > 0 && frame[at - 1] !== LF) at = frame.indexOf('id: ', at + 1);
  if (at < 0) return null;
  let id = 0;
  for (let digit = at + 4; digit < frame.length && frame[digit] !== LF; digit += 1) id = id * 10 + frame[digit] - ZERO;
  return id;
}

// Counts the events that a reader missed, and those that it received twice. Neither compensates for the other.
export function lossOf({ missing, twice }, got, due) {
  return { lost: Math.max(missing, due - got), twice: twice + Math.max(0, got - due) };
}

// Counts the frames that contain this text, and measures the time from the first to the last.
export function countFrames(words) {
  const needle = Buffer.from(words);
  let count = 0;
  let first = 0;
  let last = 0;
  return {
    frame(_id, bytes) {
      if (bytes.indexOf(needle) < 0) return;
      count += 1;
      last = Number(process.hrtime.bigint()) / 1e6;
      first ||= last;
    },
    get count() {
      return count;
    },
    get ms() {
      return last - first;
    },
  };
}

// Reads until a frame with this text has come. Because that frame may be among the lost ones, also stops when nothing
// came for a second after `over` was called.
export function readUntil(url, words, { onFrame = () => {}, ...options } = {}) {
  const needle = Buffer.from(words);
  const controller = new AbortController();
  let touched = 0;
  let timer = null;
  const look = () => {
    if (Date.now() - touched >= SILENCE_MS) controller.abort();
    else timer = setTimeout(look, SILENCE_MS / 4);
  };
  const done = readFrames(url, {
    ...options,
    signal: controller.signal,
    onFrame: (id, frame) => {
      touched = Date.now();
      onFrame(id, frame);
      return frame.indexOf(needle) >= 0;
    },
  }).finally(() => clearTimeout(timer));
  return {
    over: () => {
      touched = Date.now();
      look();
      return done;
    },
  };
}

const SILENCE_MS = 1000;
