// Every command as a script calls it: without a terminal, with its exit code, and as JSON lines that fit their schema.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { STAND_INS } from '../../support/stand-in.js';
import {
  createSite,
  enginesOf,
  expectLines,
  listRuns,
  parley,
  startDetached,
  untilFree,
  untilRun,
  type Site,
} from '../../support/command.js';

type Line = Record<string, unknown> & { readonly run: Record<string, unknown> };
const last = (text: string): Line => expectLines(text).at(-1) as Line;

describe('run', () => {
  test('success is exit code 0; the conversation goes to stdout, and nothing else to stderr', async () => {
    const site = createSite();
    const { code, stdout, stderr } = await parley(site, [
      'run',
      'rehearsal',
      '[[answer Hello there.]][[tool make]][[file a.txt]][[done {"n":1}]]',
      '--label',
      'team=core',
      '-o',
      'max_attempt=7',
      '-m',
      'tiny',
      '-p',
      'full',
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('Hello there.');
    expect(stdout).toMatch(/✓ done\n {2}\{"n":1\}/);
    // The result is shown; the message that contains it is not repeated as JSON.
    expect(stdout).not.toContain('"done":true');
    const shown = await parley(site, ['show', 'last', '--json']);
    expect(last(shown.stdout).run).toMatchObject({
      status: 'succeeded',
      result: { n: 1 },
      labels: { team: 'core' },
      model: 'tiny',
      permission: 'full',
      cwd: site.cwd,
    });
  });

  test('failure is exit code 1, with what to do next on stderr', async () => {
    const site = createSite();
    const { code, stdout, stderr } = await parley(site, ['run', 'rehearsal', '[[fail]]']);
    expect(code).toBe(1);
    expect(stdout).toContain('ENGINE_TURN_FAILED');
    expect(stderr).toMatch(/^Retry: parley retry run_\w+ /);
  });

  test('a question is exit code 3, and says how to answer', async () => {
    const { code, stdout, stderr } = await parley(createSite(), ['run', 'rehearsal', '[[ask Which?|A|B]]', '-i']);
    expect(code).toBe(3);
    expect(stdout).toMatch(/\? Which\?\n {2}1\) A\n {2}2\) B\n/);
    expect(stderr).toMatch(/^waiting for you: run_\w+\n {2}parley reply run_\w+\n$/);
  });

  test('as JSON: every event, then the run; the prompt may come on stdin, the result must fit a schema', async () => {
    const site = createSite();
    writeFileSync(join(site.cwd, 'schema.json'), '{"type":"object","required":["n"]}');
    const good = await parley(site, ['run', 'rehearsal', '-', '--json', '--schema', 'schema.json'], {
      stdin: '[[done {"n":1}]]',
    });
    const lines = expectLines(good.stdout) as Line[];
    expect({ code: good.code, stderr: good.stderr }).toEqual({ code: 0, stderr: '' });
    expect(lines.slice(0, -1).every((line) => line['protocol_version'] === 'fcmp/1.0')).toBe(true);
    expect(lines.at(-1)?.run).toMatchObject({
      status: 'succeeded',
      prompt: '[[done {"n":1}]]',
      fcmp_seq: lines.length - 1,
    });
    const bad = await parley(site, ['run', 'rehearsal', '[[done {}]]', '--json', '--schema', 'schema.json']);
    expect(bad.code).toBe(1);
    expect(last(bad.stdout).run).toMatchObject({ status: 'failed', error: { code: 'OUTPUT_INVALID' } });
  });

  test('detached: prints the id at once and the run finishes; the same request id returns the same run', async () => {
    const site = createSite();
    const first = await startDetached(site, 'rehearsal', '[[done 1]]', '--request-id', 'mine', '--scratch');
    expect(first).toMatch(/^run_[0-9A-Z]{26}$/);
    await untilRun(site, 'succeeded', first);
    await untilFree(site);
    const again = await parley(site, [
      'run',
      'rehearsal',
      '[[done 1]]',
      '--request-id',
      'mine',
      '--scratch',
      '-d',
      '--json',
    ]);
    expect(last(again.stdout).run).toMatchObject({ run_id: first });
    const other = await parley(site, ['run', 'rehearsal', '[[done 2]]', '--request-id', 'mine', '--scratch', '--json']);
    expect({ code: other.code, stdout: other.stdout }).toEqual({ code: 1, stdout: '' });
    expect(last(other.stderr)).toMatchObject({ error: { code: 'REQUEST_ID_CONFLICT' } });
  });

  test('each engine is found by its variable, asks, and continues its session after the reply', async () => {
    await Promise.all(
      STAND_INS.map(async (engine) => {
        const site = createSite();
        const asked = await parley(site, [
          'run',
          engine,
          '[[answer Soon.]][[ask Which?|A|B]][[done {"ok":true}]]',
          '-i',
          '--json',
        ]);
        expect(asked.code, asked.stderr).toBe(3);
        expect(last(asked.stdout).run).toMatchObject({
          engine,
          status: 'waiting_user',
          interaction: { question: { prompt: 'Which?' } },
        });
        const answered = await parley(site, ['reply', 'last', '2', '--json']);
        expect(answered.code, answered.stderr).toBe(0);
        expect(last(answered.stdout).run).toMatchObject({
          status: 'succeeded',
          attempt_number: 2,
          result: { ok: true },
        });
        expect((await parley(site, ['verify', 'last'])).code).toBe(0);
        expect(await enginesOf(site)).toEqual([]);
      }),
    );
  });
});

async function createWaiting(prompt: string): Promise<Site> {
  const site = createSite();
  await startDetached(site, 'rehearsal', prompt, '-i');
  await untilRun(site, 'waiting_user');
  await untilFree(site);
  return site;
}

describe('reply', () => {
  test('a number chooses an option; words, stdin and --value are used as given; a key applies once', async () => {
    const site = await createWaiting('[[ask Which?|A|B]][[done 1]]');
    const bad = await parley(site, ['reply', 'last', '3']);
    expect(bad).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('there is no option 3: choose 1 to 2') as string,
    });
    const { code, stdout } = await parley(site, ['reply', 'last', '2', '--key', 'k']);
    expect({ code, answered: /answered by [^:]+: B/.test(stdout) }).toEqual({ code: 0, answered: true });
    const again = await parley(site, ['reply', 'last', '2', '--key', 'k', '--json']);
    expect(again.code, again.stderr).toBe(0);
    const other = await parley(site, ['reply', 'last', '1', '--key', 'k', '--json']);
    expect(other.code).toBe(1);
    expect(last(other.stderr)).toMatchObject({ error: { code: expect.stringMatching(/REPLY_CONFLICT/) as string } });
  });

  test('--finish ends a conversation in which nothing was asked; stdin may carry the answer', async () => {
    const site = await createWaiting('[[answer Done so far.]]');
    const more = await parley(site, ['reply', 'last', '-'], { stdin: '[[answer More.]]' });
    expect({ code: more.code, more: more.stdout.includes('More.') }).toEqual({ code: 3, more: true });
    const finished = await parley(site, ['reply', 'last', '--finish', '--json']);
    expect(finished.code).toBe(0);
    expect(last(finished.stdout).run).toMatchObject({ status: 'succeeded', attempt_number: 3 });
    const late = await parley(site, ['reply', 'last', 'hello', '--json']);
    expect({ code: late.code, error: last(late.stderr)['error'] }).toMatchObject({
      code: 1,
      error: { code: 'RUN_NOT_WAITING' },
    });
  });

  test('--value gives JSON to the letter, which an approval needs; detached it prints the run', async () => {
    const site = await createWaiting('[[approve rm -rf build]][[done 1]]');
    expect(await parley(site, ['reply', 'last', 'maybe'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('y approves') as string,
    });
    expect(await parley(site, ['reply', 'last', '--value', '{no'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--value takes JSON') as string,
    });
    const refused = await parley(site, ['reply', 'last', '--value', '"yes"', '--json']);
    expect({ code: refused.code, error: last(refused.stderr)['error'] }).toMatchObject({
      code: 1,
      error: { code: 'APPROVAL_INVALID' },
    });
    const { code, stdout } = await parley(site, ['reply', 'last', '--value', '{"decision":"approve"}', '-d', '--json']);
    expect(code).toBe(0);
    expect(last(stdout)).toMatchObject({ type: 'run' });
    await untilRun(site, 'succeeded');
  });
});

test('continue starts a run in the session, retry repeats it, and watching a canceled run exits with 4', async () => {
  const site = createSite();
  await parley(site, ['run', 'rehearsal', '[[answer One.]][[fail]]']);
  const retried = await parley(site, ['retry', 'last', '--json']);
  expect(retried.code).toBe(1);
  const continued = await parley(site, ['continue', 'last', '[[done 2]]', '--json']);
  expect(continued.code, continued.stderr).toBe(0);
  expect(last(continued.stdout).run).toMatchObject({
    status: 'succeeded',
    result: 2,
    continue_from: last(retried.stdout).run['run_id'],
  });
  const asked = await parley(site, ['run', 'rehearsal', '[[ask Well?]]', '-i']);
  expect(asked.code).toBe(3);
  expect(await parley(site, ['retry', 'last'])).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/waiting|ended/) as string,
  });
  const canceled = await parley(site, ['cancel', 'last', '--json']);
  expect({ code: canceled.code, status: last(canceled.stdout).run['status'] }).toEqual({ code: 0, status: 'canceled' });
  expect((await parley(site, ['cancel', 'last'])).code).toBe(0);
  expect((await parley(site, ['watch', 'last'])).code).toBe(4);
  expect((await parley(site, ['retry', 'last', '-d'])).stdout).toMatch(/^run_\w{26}\n$/);
});

test('fork: a new run with a copy of the conversation, in front of the person; the source waits on', async () => {
  const site = createSite();
  expect((await parley(site, ['run', 'codex', '[[answer Which one?]]', '-i', '-l', 'a=b'])).code).toBe(3);
  const [source] = (await listRuns(site)).map((run) => run.run_id) as [string];
  const forked = await parley(site, ['fork', 'last', '-', '--json'], { stdin: '[[done 2]]' });
  expect(forked.code, forked.stderr).toBe(0);
  expect(last(forked.stdout).run).toMatchObject({
    status: 'succeeded',
    result: 2,
    fork_from: source,
    continue_from: null,
    cwd: site.cwd,
    labels: { a: 'b' },
  });
  const id = String(last(forked.stdout).run['run_id']);
  expect((await parley(site, ['show', id])).stdout).toMatch(new RegExp(`^copy of +${source}$`, 'm'));
  expect((await parley(site, ['fork', id, '[[done 3]]', '-d'])).stdout).toMatch(/^run_\w{26}\n$/);
  expect((await listRuns(site)).find((run) => run.run_id === source)).toMatchObject({ status: 'waiting_user' });
  await untilFree(site);
  await parley(site, ['run', 'rehearsal', '[[done 1]]']);
  const refused = await parley(site, ['fork', 'last', 'x', '--json']);
  expect({ code: refused.code, error: last(refused.stderr)['error'] }).toMatchObject({
    code: 1,
    error: { code: 'FORK_UNSUPPORTED' },
  });
});

test('the commands that only look: ls, show, watch, logs, verify, replay', async () => {
  const site = createSite();
  await parley(site, ['run', 'rehearsal', '[[answer One.]][[done 1]]', '-l', 'a=b']);
  await parley(site, ['run', 'rehearsal', '[[answer Two.]][[ask Well?|yes]]', '-i']);
  const [newest, oldest] = (await listRuns(site)).map((run) => run.run_id) as [string, string];
  const look = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await parley(site, args);
    expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' });
    return stdout;
  };
  const bytes = readFileSync(join(site.data, 'runs', oldest, 'attempts/1/stdout.log'), 'utf8');
  const listing = async (): Promise<void> => {
    expect(await look('ls', '-q')).toBe(`${newest}\n${oldest}\n`);
    expect(await look('ls')).toMatch(
      /^RUN +STATUS +ENGINE +AGE +PROMPT\n(?:\w{6} +(?:waiting for you|succeeded) +rehearsal .*\n){2}$/,
    );
    expect(expectLines(await look('ls', '--json'))).toHaveLength(2);
    expect(await look('ls', '-q', '--status', 'waiting_user')).toBe(`${newest}\n`);
    expect(await look('ls', '-q', '--label', 'a=b')).toBe(`${oldest}\n`);
    expect(await look('ls', '-q', '--engine', 'codex')).toBe('');
    expect(await look('ls', '-q', '-n', '1')).toBe(`${newest}\n`);
    // A part of an id is enough.
    expect(await look('show', oldest.slice(-8).toLowerCase())).toMatch(
      new RegExp(`^run +${oldest}\nstatus +succeeded, turn 1[^]*label +a=b[^]*One\\.[^]*✓ done`),
    );
    expect(expectLines(await look('show', newest, '--json'))).toMatchObject([
      { run: { run_id: newest, interaction: { state: 'pending' } } },
    ]);
  };
  const watching = async (): Promise<void> => {
    const events = expectLines(await look('watch', oldest, '--json'));
    expect(expectLines(await look('watch', oldest, '--json', '--cursor', '2'))).toEqual(events.slice(2));
    expect(await parley(site, ['watch', newest, '--no-follow'])).toMatchObject({
      code: 3,
      stdout: expect.stringContaining('? Well?') as string,
    });
    expect(await look('replay', oldest)).toContain('identical to the stored ones, byte for byte');
    expect(expectLines(await look('replay', oldest, '--json'))).toMatchObject([
      { ok: true, differs_at: null, events: events.length },
    ]);
    expect(expectLines(await look('replay', oldest, '--print'))).toEqual(events);
  };
  const proving = async (): Promise<void> => {
    const rasp = expectLines(await look('watch', oldest, '--rasp')) as {
      seq: number;
      raw_ref: { byte_from: number; byte_to: number } | null;
    }[];
    const observed = rasp.findLast((event) => event.raw_ref !== null);
    expect(await look('logs', oldest)).toBe(bytes);
    expect(await look('logs', oldest, '--from', '3', '--to', '9')).toBe(bytes.slice(3, 9));
    expect(await look('logs', oldest, '--stream', 'stderr')).toBe('');
    expect(await look('logs', oldest, '--event', String(observed?.seq))).toBe(
      bytes.slice(observed?.raw_ref?.byte_from, observed?.raw_ref?.byte_to),
    );
    expect(await look('verify', oldest)).toMatch(/everything is as it was written\n(?: {2}✓ .+\n){10}$/);
    expect(expectLines(await look('verify', '--all', '--json'))).toMatchObject([{ ok: true }, { ok: true }]);
  };
  await Promise.all([listing(), watching(), proving()]);
  expect(expectLines(await look('rm', oldest, '--json'))).toEqual([{ type: 'deleted', run_id: oldest }]);
  expect(await look('ls', '-q')).toBe(`${newest}\n`);
  // A waiting run has not ended.
  const refused = await parley(site, ['rm', newest, '--json']);
  expect({ code: refused.code, error: last(refused.stderr)['error'] }).toMatchObject({
    code: 1,
    error: { code: 'RUN_NOT_ENDED' },
  });
});

test('the commands beside the runs: doctor, parse, contract', async () => {
  const site = createSite();
  const doctor = await parley(site, ['doctor', '--json']);
  expect(doctor.code).toBe(0);
  expect(expectLines(doctor.stdout)).toMatchObject([
    {
      ok: true,
      findings: expect.arrayContaining([
        expect.objectContaining({ name: 'codex', text: expect.stringContaining('PARLEY_CODEX_BIN') as string }),
      ]) as unknown,
    },
  ]);
  expect((await parley(site, ['doctor'])).stdout).toMatch(/✓ rehearsal +\d+\.\d+\.\d+ \(bundled\)/);
  await parley(site, ['run', 'rehearsal', '[[answer One.]][[done 1]]']);
  const { stdout: recorded } = await parley(site, ['logs', 'last']);
  for (const flags of [[], ['--fcmp']]) {
    const parsed = await parley(site, ['parse', '--engine', 'rehearsal', ...flags], { stdin: recorded });
    expect(parsed.code, parsed.stderr).toBe(0);
    expect(expectLines(parsed.stdout).length).toBeGreaterThan(3);
  }
  expect(JSON.parse((await parley(site, ['contract'])).stdout)).toMatchObject({ initial: 'queued' });
});
