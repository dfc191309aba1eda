// Bytes to RASP text, compared with the minimum for any reader of such a stream: split, decode, JSON.parse.
import { createTurnParser, findEngine } from '../dist/engines/registry.js';
import { createStamp } from '../dist/rasp/stamp.js';
import { EventBuffer } from '../dist/journal/event-buffer.js';
import { PROFILES, recordedShape } from './recorded-shapes.mjs';

const STREAM_BYTES = 36 * 1024 * 1024;
const CHUNK_BYTES = 64 * 1024;
const ROUNDS = 7;

export default function benchParse() {
  console.log(
    `parse: ${STREAM_BYTES / 1024 / 1024} MiB a profile in ${CHUNK_BYTES / 1024} KiB chunks, median of ${ROUNDS} ` +
      `rounds, Node ${process.version}`,
  );
  const rows = PROFILES.map((name) => measure(name));
  console.table(Object.fromEntries(rows));
}

function measure(name) {
  const { stream, lines } = recordedShape(name, STREAM_BYTES);
  const engine = findEngine(name);
  const bare = [];
  const ours = [];
  let events = 0;
  // In turns, so that a slow phase of the machine affects both.
  for (let round = 0; round < ROUNDS; round += 1) {
    bare.push(time(() => bareLoop(stream)));
    ours.push(time(() => (events = toRasp(engine, stream))));
  }
  const bareMs = median(bare);
  const oursMs = median(ours);
  return [
    engine.profile,
    {
      'bytes/line': Math.round(stream.length / lines),
      'bare ms': Math.round(bareMs),
      'bare lines/s': Math.round(lines / (bareMs / 1000)),
      'ours ms': Math.round(oursMs),
      'ours lines/s': Math.round(lines / (oursMs / 1000)),
      'events/line': Number((events / lines).toFixed(2)),
      ratio: Number((bareMs / oursMs).toFixed(2)),
      'best ratio': Number((Math.min(...bare) / Math.min(...ours)).toFixed(2)),
    },
  ];
}

function bareLoop(stream) {
  let objects = 0;
  let carry = Buffer.alloc(0);
  for (let at = 0; at < stream.length; at += CHUNK_BYTES) {
    const chunk = stream.subarray(at, at + CHUNK_BYTES);
    let start = 0;
    for (let lf = chunk.indexOf(10); lf >= 0; lf = chunk.indexOf(10, start)) {
      const line =
        carry.length > 0
          ? Buffer.concat([carry, chunk.subarray(0, lf)]).toString('utf8')
          : chunk.toString('utf8', start, lf);
      carry = Buffer.alloc(0);
      if (JSON.parse(line).type) objects += 1;
      start = lf + 1;
    }
    carry = Buffer.concat([carry, chunk.subarray(start)]);
  }
  return objects;
}

function toRasp(engine, stream) {
  const parser = createTurnParser(engine);
  const stamp = createStamp({ runId: 'run_01HZZZZZZZZZZZZZZZZZZZZZZZ', engine: engine.name, attempt: 1 });
  const buffer = new EventBuffer();
  let seq = 0;
  let bytes = 0;
  const write = (drafts) => {
    if (drafts.length === 0) return;
    const ts = new Date().toISOString();
    for (const draft of drafts) stamp(draft, (seq += 1), ts, buffer);
    bytes += buffer.drain().length;
  };
  for (let at = 0; at < stream.length; at += CHUNK_BYTES)
    write(parser.push('stdout', stream.subarray(at, at + CHUNK_BYTES)));
  write(parser.finish());
  if (bytes < stream.length / 4) throw new Error('the events are too small to be plausible');
  return seq;
}

function time(work) {
  const start = process.hrtime.bigint();
  work();
  return Number(process.hrtime.bigint() - start) / 1e6;
}

function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
}
