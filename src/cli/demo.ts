// parley demo: the core on one recorded turn of Codex, from the bytes to the judgement. Nothing is started.
import { readFile } from 'node:fs/promises';
import { findEngine } from '../engines/registry.js';
import type { FcmpData, FcmpEvent } from '../fcmp/event.js';
import { createCountingIds } from '../kernel/ids.js';
import { RecordingReader } from '../orchestrator/read-recording.js';
import type { RaspEvent } from '../rasp/event.js';
import { measureCover } from '../rasp/cover.js';
import type { Io } from './io.js';

export async function runDemo(io: Io): Promise<void> {
  const stdout = await readExample('codex-ask.stdout');
  const stderr = await readExample('codex-ask.stderr');
  const rasp: RaspEvent[] = [];
  const fcmp: FcmpEvent[] = [];
  const reader = new RecordingReader(
    { engine: findEngine('codex'), mode: 'interactive', prompt: 'Set up the storage.', resumedFrom: null, clock: io.clock, ids: createCountingIds() },
    { rasp: (lines) => rasp.push(...parseLines<RaspEvent>(lines)), fcmp: (lines) => fcmp.push(...parseLines<FcmpEvent>(lines)) },
  );
  reader.push('stdout', stdout);
  reader.push('stderr', stderr);
  const { verdict } = reader.finish({ code: 0, signal: null });

  const say = (text = '') => io.stdout.write(`${text}\n`);
  say('1. What the engine printed: a recorded turn of Codex 0.166 (examples/codex-ask.stdout)');
  for (const line of stdout.toString('utf8').trimEnd().split('\n')) say(`   ${clip(line, 100)}`);
  say();
  say('2. What was observed: RASP, one event protocol for every engine, each event tied to its bytes');
  for (const event of rasp) say(`   ${String(event.seq).padStart(2)}  ${event.event.type.padEnd(26)} ${describeRef(event)}`);
  say();
  say('3. What a person sees: FCMP, a conversation folded from RASP');
  for (const event of fcmp) for (const line of describe(event)) say(`   ${line}`);
  say();
  say('4. What it means for the run');
  say(`   ${verdict.event} (${verdict.reasonCode}): the run waits for an answer and needs no process meanwhile`);
  for (const [stream, size] of [['stdout', stdout.length], ['stderr', stderr.length]] as const) {
    const { covered, overlaps } = measureCover(rasp, stream);
    say(`   ${stream}: ${covered} of ${size} bytes are covered by events, ${overlaps} overlaps`);
  }
  say();
  say('Try it on output of your own: bin/parley.js parse --help');
}

function readExample(name: string): Promise<Buffer> {
  return readFile(new URL(`../../examples/${name}`, import.meta.url));
}

function parseLines<T>(lines: Buffer): T[] {
  return lines.toString('utf8').trimEnd().split('\n').map((line) => JSON.parse(line) as T);
}

function describeRef({ raw_ref: ref }: RaspEvent): string {
  return ref ? `${ref.stream} bytes ${ref.byte_from}-${ref.byte_to}` : 'by Parley';
}

function describe(event: FcmpEvent): string[] {
  switch (event.type) {
    case 'user.message':
      return [`you    ${dataOf(event, 'user.message').text}`];
    case 'assistant.message.final':
      return [`agent  ${dataOf(event, 'assistant.message.final').text}`];
    case 'assistant.tool.completed': {
      const { name, status } = dataOf(event, 'assistant.tool.completed');
      return [`tool   ${name}: ${status}`];
    }
    case 'user.input.required': {
      const { prompt, options } = dataOf(event, 'user.input.required');
      return [...prompt.split('\n').map((line, index) => `${index === 0 ? 'ASKS ' : '     '}  ${line}`), ...options.map(({ label }, index) => `       ${index + 1}) ${label}`)];
    }
    case 'conversation.state.changed': {
      const { from, to, trigger } = dataOf(event, 'conversation.state.changed');
      return [`state  ${from} -> ${to} (${trigger})`];
    }
    case 'raw.stderr':
      return [`stderr ${clip(dataOf(event, 'raw.stderr').text, 80)}`];
    default:
      return [];
  }
}

function dataOf<T extends keyof FcmpData>(event: FcmpEvent, _type: T): FcmpData[T] {
  return event.data as unknown as FcmpData[T];
}

function clip(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
