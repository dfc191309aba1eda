// Streams of any size in the shapes that were recorded from the CLIs: the same members, real proportions of event
// kinds, text of varied length, a tenth of it not ASCII.

const SENTENCE =
  'the agent reads a file then edits two lines and runs the tests again before it reports what changed in the parser';
const WORDS = SENTENCE.split(' ');
const OTHER = ['数据库已经准备好了', 'prüft die Größe', 'наконец готово', '完了しました'];

// A fixed sequence: every run of the bench has the same bytes.
function createRandom() {
  let state = 42;
  return (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state % limit;
  };
}

function createText(random) {
  return (words) => {
    const text = [];
    for (let at = 0; at < words; at += 1)
      text.push(random(10) === 0 && random(2) === 0 ? OTHER[random(OTHER.length)] : WORDS[random(WORDS.length)]);
    return text.join(' ');
  };
}

const uuid = '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c';

function* codexLines(random, text) {
  yield { type: 'thread.started', thread_id: uuid };
  yield { type: 'turn.started' };
  for (let item = 0; ; item += 1) {
    const id = `item_${item}`;
    switch (random(5)) {
      case 0:
        yield { type: 'item.completed', item: { id, type: 'reasoning', text: text(20 + random(60)) } };
        break;
      case 1: {
        const command = `/bin/bash -lc '${text(8)}'`;
        yield {
          type: 'item.started',
          item: {
            id,
            type: 'command_execution',
            command,
            aggregated_output: '',
            exit_code: null,
            status: 'in_progress',
          },
        };
        yield {
          type: 'item.completed',
          item: {
            id,
            type: 'command_execution',
            command,
            aggregated_output: `${text(40 + random(160))}\n`,
            exit_code: 0,
            status: 'completed',
          },
        };
        break;
      }
      case 2:
        yield {
          type: 'item.completed',
          item: {
            id,
            type: 'file_change',
            changes: [{ path: `/srv/demo/${text(1)}.ts`, kind: 'update' }],
            status: 'completed',
          },
        };
        break;
      default:
        yield { type: 'item.completed', item: { id, type: 'agent_message', text: text(30 + random(160)) } };
    }
  }
}

function* geminiLines(random, text) {
  yield { type: 'init', timestamp: '2026-11-15T18:11:08.889Z', session_id: uuid, model: 'gemini-2.5-flash' };
  yield { type: 'message', timestamp: '2026-11-15T18:11:08.892Z', role: 'user', content: text(30) };
  for (let call = 0; ; call += 1) {
    for (let delta = 0; delta < 10; delta += 1)
      yield {
        type: 'message',
        timestamp: '2026-11-15T18:11:08.947Z',
        role: 'assistant',
        content: `${text(5 + random(60))} `,
        delta: true,
      };
    const tool_id = `run_shell_command__run_shell_command_1794766295485_${call}`;
    yield {
      type: 'tool_use',
      timestamp: '2026-11-15T18:11:35.491Z',
      tool_name: 'run_shell_command',
      tool_id,
      parameters: { command: text(10), description: text(6) },
    };
    yield {
      type: 'tool_result',
      timestamp: '2026-11-15T18:11:35.615Z',
      tool_id,
      status: 'success',
      output: text(60 + random(120)),
    };
  }
}

function* opencodeLines(random, text) {
  const sessionID = 'ses_e1f945bf0ffefqKnzUAxMzYdTN';
  const messageID = 'msg_1e06bb045001LV5Cutg7wmPpMm';
  const part = (id, rest) => ({ id: `prt_1e06bb2ea001dKcItM00J${id}`, messageID, sessionID, ...rest });
  for (let id = 0; ; id += 1) {
    yield { type: 'step_start', timestamp: 1794766517087, sessionID, part: part(id, { type: 'step-start' }) };
    yield {
      type: 'text',
      timestamp: 1794766517088,
      sessionID,
      part: part(id, {
        type: 'text',
        text: text(30 + random(120)),
        time: { start: 1794766516977, end: 1794766517021 },
      }),
    };
    yield {
      type: 'tool_use',
      timestamp: 1794766517345,
      sessionID,
      part: part(id, {
        type: 'tool',
        tool: 'bash',
        callID: `call_${id}`,
        state: {
          status: 'completed',
          input: { command: text(10), description: text(4) },
          output: text(60 + random(120)),
          metadata: { output: text(20), exit: 0, truncated: false },
          title: text(6),
          time: { start: 1794766517014, end: 1794766517236 },
        },
      }),
    };
    yield {
      type: 'step_finish',
      timestamp: 1794766517345,
      sessionID,
      part: part(id, {
        reason: 'tool-calls',
        type: 'step-finish',
        tokens: { total: 15, input: 10, output: 5, reasoning: 0, cache: { write: 0, read: 0 } },
        cost: 0,
      }),
    };
  }
}

function* claudeLines(random, text) {
  const session_id = uuid;
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-opus' };
  yield { type: 'system', subtype: 'init', cwd: '/srv/demo/work', session_id, tools: ['Bash'], model: 'claude-opus' };
  for (let call = 0; ; call += 1) {
    const id = `toolu_${call}`;
    const block = (content) => ({
      type: 'assistant',
      message: { ...message, content: [content] },
      parent_tool_use_id: null,
      session_id,
      uuid,
    });
    yield block({ type: 'text', text: text(30 + random(160)) });
    yield block({ type: 'tool_use', id, name: 'Bash', input: { command: text(10), description: text(4) } });
    const output = text(60 + random(120));
    yield {
      type: 'user',
      message: { role: 'user', content: [{ tool_use_id: id, type: 'tool_result', content: output, is_error: false }] },
      parent_tool_use_id: null,
      session_id,
      uuid,
      tool_use_result: { stdout: output, stderr: '', interrupted: false, isImage: false },
    };
  }
}

const SHAPES = { claude: claudeLines, codex: codexLines, gemini: geminiLines, opencode: opencodeLines };
export const PROFILES = Object.keys(SHAPES);

// A stream of about so many bytes, with the number of its lines.
export function recordedShape(engine, bytes) {
  const random = createRandom();
  const chunks = [];
  let size = 0;
  let lines = 0;
  for (const event of SHAPES[engine](random, createText(random))) {
    const line = Buffer.from(`${JSON.stringify(event)}\n`);
    chunks.push(line);
    size += line.length;
    lines += 1;
    if (size >= bytes) break;
  }
  return { stream: Buffer.concat(chunks), lines };
}
