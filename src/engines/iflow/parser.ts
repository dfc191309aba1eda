// Profile iflow_text: stdout is the model's text, and one <Execution Info> block contains everything else. The block
// comes on stderr; a block on stdout counts only if stderr has none, because the model could have printed it. Success
// is a block without a terminationReason; only the last block counts. A resumed turn names its session at its
// beginning, so a turn that is killed has still confirmed its session.
import { stripVTControlCharacters } from 'node:util';
import { asCount, asObject, asString, clipDepth, isObject, parseJson, type JsonObject } from '../../kernel/json.js';
import { CONFIDENCE } from '../../rasp/confidence.js';
import type { EngineFailure } from '../../run/evidence.js';
import { classifyFailure } from '../auth-failure.js';
import type { Emitter } from '../emitter.js';
import { HeldLines } from '../held-lines.js';
import { MessageText } from '../message-text.js';
import { isBlank } from '../ndjson.js';
import type { ByteRange } from '../../rasp/draft.js';
import type { ParserReader } from '../turn-parser.js';

export const IFLOW_PROFILE = 'iflow_text';

const OPEN = '<Execution Info>';
const CLOSE = '</Execution Info>';
// The CLI's own remarks among the model's text.
const NOISE = /^Model \S+ does not support thinking mode\s*$/;
// iFlow reports an expired login on stdout.
const COMPLAINT = /SERVER_OAUTH2_REQUIRED|令牌已过期/;
// The first words on stderr of a turn that continues a session.
const NOTICE = /^\u2139\ufe0f?\s+Resuming session (\S+) \(\d+ messages? loaded\)\s*$/;
// Blocks on stdout that are text, because a later block counts.
const BLOCK_SESSION = /<Execution Info>[^<]{0,2000}?"session-id"\s{0,8}:\s{0,8}"([^"]{1,200})"/g;
const MESSAGE_ID = 'message_1';

export function createIflowReader(out: Emitter): ParserReader {
  let block: JsonObject | null = null;
  let lastMessage: string | null = null;
  let failure: EngineFailure | null = null;
  let lastText: ByteRange | null = null;
  let complaint: string | undefined;
  let beginning = true;
  const message = new MessageText();
  // From the first opening tag on stdout to the end: a block or text, which only the end decides.
  const stdoutHeld = new HeldLines(out);
  // The lines of a block that is being read on stderr.
  const stderrHeld = new HeldLines(out);

  function stdoutLine(line: string, terminated: boolean): void {
    if (!terminated) out.note('UNTERMINATED_LAST_LINE');
    const text = plain(line);
    if (stdoutHeld.isEmpty && !text.includes(OPEN)) textLine(text, terminated);
    else if (!stdoutHeld.add(text, terminated)) stdoutHeld.release(textLine);
  }

  function textLine(text: string, terminated: boolean): void {
    if (text.includes('\0')) out.note('NUL_BYTES');
    if (COMPLAINT.test(text)) complaint ??= text.trim();
    if (NOISE.test(text)) {
      out.emit('diagnostic.engine.warning', { message: text });
      out.hit();
      return;
    }
    const piece = terminated ? `${text}\n` : text;
    out.emit('agent.message.delta', { text: piece }, MESSAGE_ID, CONFIDENCE.unconfirmed);
    // A blank line belongs to the text, but it is no unit.
    if (!isBlank(text)) out.hit();
    message.add(piece);
    lastText = out.range;
  }

  // The text is for people, but colour codes in it would hide a tag or an envelope.
  function plain(line: string): string {
    if (!line.includes('\u001b')) return line;
    out.note('ANSI_SEQUENCES');
    return stripVTControlCharacters(line);
  }

  function stderrLine(line: string): boolean {
    const text = stripVTControlCharacters(line);
    if (beginning && !isBlank(text)) readNotice(text);
    if (stderrHeld.isEmpty && !text.includes(OPEN)) return false;
    // Only the last opening tag before the closing one can start the block.
    if (text.includes(OPEN)) stderrHeld.release(rawStderr);
    if (!stderrHeld.add(text, true)) {
      stderrHeld.release(rawStderr);
      return true;
    }
    if (text.includes(CLOSE)) {
      const { text: held, range } = stderrHeld.takeAsOne();
      const before = out.range;
      out.at(range);
      if (readBlock(held)) for (const rest of aroundBlock(held)) out.raw('stderr', rest);
      else out.raw('stderr', held);
      out.at(before);
    }
    return true;
  }

  // Later it could be the output of a tool. The line itself stays raw.
  function readNotice(text: string): void {
    beginning = false;
    const id = NOTICE.exec(text)?.[1];
    if (id !== undefined) out.bindSession(id, undefined, CONFIDENCE.convention);
  }

  // The last block counts: the CLI writes one at the end of each of its own attempts.
  function rebind(id: string): void {
    if (out.sessionId !== null) out.warn('SESSION_ID_CHANGED', `the block names ${id}, after ${out.sessionId}`);
    out.bindSession(id);
  }

  function rawStderr(line: string): void {
    out.raw('stderr', line);
  }

  // Emits the events of a block; returns false if the block has no readable content.
  function readBlock(text: string): boolean {
    const body = parseJson(text.slice(text.lastIndexOf(OPEN) + OPEN.length, text.lastIndexOf(CLOSE)));
    if (!isObject(body)) {
      out.warn('BLOCK_UNDECODABLE', 'the content of the <Execution Info> block is not a JSON object');
      return false;
    }
    block = body;
    const id = asString(body['session-id']);
    if (id && id !== out.sessionId) rebind(id);
    if (!id) out.warn('FIELD_DRIFT', 'the block names no session-id', { path: 'session-id' });
    const tokens = asObject(body.tokenUsage);
    out.emit('agent.usage', {
      scope: 'turn',
      input_tokens: asCount(tokens?.input),
      output_tokens: asCount(tokens?.output),
      total_tokens: asCount(tokens?.total),
      duration_ms: asCount(body.executionTimeMs),
    });
    const { terminationReason } = body;
    const reason =
      terminationReason === undefined || terminationReason === null
        ? undefined
        : (asString(terminationReason) ?? JSON.stringify(clipDepth(terminationReason)));
    failure = reason === undefined ? null : classifyFailure(`the engine stopped: ${reason}`);
    if (reason !== undefined) out.emit('diagnostic.engine.error', { message: reason, terminal: true });
    return true;
  }

  function finish(): void {
    if (!stderrHeld.isEmpty) {
      stderrHeld.release(rawStderr);
      out.warn('BLOCK_UNDECODABLE', 'an <Execution Info> block has no end');
    }
    readStdoutBlock();
    out.at(lastText);
    closeMessage();
  }

  function readStdoutBlock(): void {
    if (stdoutHeld.isEmpty) return;
    const lines = stdoutHeld.texts;
    const last = lines.findLastIndex((line) => line.includes(CLOSE));
    const first = last < 0 ? -1 : lines.slice(0, last + 1).findLastIndex((line) => line.includes(OPEN));
    if (block !== null || first < 0) {
      stdoutHeld.release(textLine);
      return;
    }
    const earlier = lines.slice(0, first).join('\n');
    stdoutHeld.release(textLine, first);
    const { text, range } = stdoutHeld.takeAsOne(last - first + 1);
    out.at(range);
    if (readBlock(text)) {
      for (const [, id] of earlier.matchAll(BLOCK_SESSION))
        if (id !== out.sessionId) out.warn('SESSION_ID_CHANGED', `an earlier block names ${id}`);
      out.hit();
      for (const rest of aroundBlock(text)) textLine(rest, true);
    } else textLine(text, true);
    stdoutHeld.release(textLine);
  }

  function closeMessage(): void {
    const confidence = block === null ? CONFIDENCE.guessed : CONFIDENCE.convention;
    if (!message.isEmpty) {
      const { text, truncated } = message.drain();
      const whole = text.trimEnd();
      if (whole !== '') {
        out.emitMessage({ text: whole, truncated, literal: undefined }, MESSAGE_ID, confidence);
        lastMessage = whole;
      }
    }
    out.at(null);
    if (block !== null) return;
    out.warn('BLOCK_MISSING', 'no <Execution Info> block was found; the text is kept with low confidence');
    out.missAll();
  }

  return {
    stdoutLine,
    stderrLine,
    longLine: (stream) => {
      if (stream === 'stdout') stdoutHeld.release(textLine);
      else stderrHeld.release(rawStderr);
    },
    finish,
    evidence: () => ({
      success: block !== null && failure === null,
      failure,
      unfinished: block === null ? 'NO_EXECUTION_INFO' : null,
      questions: [],
      lastMessage,
      complaint,
    }),
  };
}

// Text on the same line as one of the tags.
function aroundBlock(text: string): string[] {
  return [text.slice(0, text.lastIndexOf(OPEN)), text.slice(text.lastIndexOf(CLOSE) + CLOSE.length)].filter(
    (rest) => !isBlank(rest),
  );
}
