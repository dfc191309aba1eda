// Traces that engine processes write themselves: started processes, their turn, and their input.
import { existsSync, readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { readMark } from '../../src/process/process-table.js';

export interface TracedProcess {
  // Run and attempt, as in its mark.
  readonly turn: string;
  readonly runId: string;
  readonly attempt: number;
  readonly pid: number;
  readonly input: string;
}

export function readTrace(file: string): TracedProcess[] {
  const processes: { turn: string; pid: number; input: string }[] = [];
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
  for (const line of lines) {
    const {
      turn,
      pid,
      began,
      input = '',
    } = JSON.parse(line) as { turn: string; pid: number; began?: string[]; input?: string };
    if (began) processes.push({ turn, pid, input: '' });
    const process = processes.findLast((each) => each.pid === pid && each.turn === turn);
    if (process) process.input += input;
  }
  return processes.map(({ turn, pid, input }) => {
    const [runId = '', attempt = ''] = turn.split('/');
    return { turn, runId, attempt: Number(attempt), pid, input };
  });
}

// Expects that no turn had two processes and that no request of a process was answered twice.
export function expectNothingTwice(processes: readonly TracedProcess[]): void {
  expect(twice(processes.map(({ turn }) => turn)), 'turns with two processes').toEqual([]);
  for (const { turn, input } of processes) expect(twice(answersIn(input)), `answered twice in ${turn}`).toEqual([]);
}

export function isThere({ pid, turn }: TracedProcess): boolean {
  const mark = readMark(pid);
  return mark.kind === 'marked' && mark.mark === turn;
}

export function twice(all: readonly string[]): string[] {
  return all.filter((each, index) => all.indexOf(each) !== index);
}

// Counts by the request ids of a resident engine; the input of other engines is not JSON.
function answersIn(input: string): string[] {
  return input.split('\n').flatMap((line) => {
    if (!line.startsWith('{')) return [];
    try {
      const { id, method } = JSON.parse(line) as { id?: number | string; method?: string };
      return method === undefined && id !== undefined ? [String(id)] : [];
    } catch {
      // A prompt of several lines, or one that was interrupted with its process.
      return [];
    }
  });
}
