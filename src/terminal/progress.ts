// Folds events into the current activity of the engine, and renders it as one line. The line leaves the last column
// free, so that no terminal wraps it.
import { textWidth } from './text-width.js';
import type { FcmpData, FcmpEvent } from '../fcmp/event.js';
import { formatAge, formatCount } from './format-time.js';
import { exactLine, fitLine, oneLine } from './safe-text.js';
import { paint, type Style } from './style.js';
import { terminalTexts } from './texts.js';
import { tellInput } from './tool-text.js';
import { countTokens } from './usage-text.js';

interface RunningTool {
  readonly key: string;
  readonly name: string;
  readonly what: string;
  readonly since: number;
}

export interface Activity {
  readonly phase: 'queued' | 'working' | 'waiting' | 'over';
  readonly doing: 'starting' | 'thinking' | 'writing';
  readonly engine: string | null;
  readonly attempt: number;
  // When the run was queued or the turn started; tools have their own times.
  readonly since: number;
  readonly tools: readonly RunningTool[];
  readonly tokens: number;
}

export const NO_ACTIVITY: Activity = {
  phase: 'queued',
  doing: 'starting',
  engine: null,
  attempt: 1,
  since: 0,
  tools: [],
  tokens: 0,
};

const FRAMES = [...'⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'];
const FRAME_MS = 100;
const LEAST = 8;

export function toolKey({ call_id: id, name }: { readonly call_id: string | null; readonly name: string }): string {
  return id ?? `name ${name}`;
}

export function nextActivity(activity: Activity, event: FcmpEvent): Activity {
  const at = Date.parse(event.ts);
  const now = { ...activity, attempt: event.attempt_number };
  switch (event.type) {
    case 'conversation.started':
      return { ...now, since: at, engine: (event.data as unknown as FcmpData['conversation.started']).engine };
    case 'conversation.state.changed':
      return enter(now, (event.data as unknown as FcmpData['conversation.state.changed']).to, at);
    case 'assistant.message.delta':
      return { ...now, doing: 'writing' };
    case 'assistant.tool.started': {
      const call = event.data as unknown as FcmpData['assistant.tool.started'];
      return {
        ...now,
        doing: 'thinking',
        tools: [...now.tools, { key: toolKey(call), name: call.name, what: tellInput(call.input), since: at }],
      };
    }
    case 'assistant.tool.completed': {
      const key = toolKey(event.data as unknown as FcmpData['assistant.tool.completed']);
      return { ...now, doing: 'thinking', tools: now.tools.filter((tool) => tool.key !== key) };
    }
    case 'usage': {
      const usage = event.data as unknown as FcmpData['usage'];
      return { ...now, tokens: countTokens(usage) + (usage.scope === 'step' ? now.tokens : 0) };
    }
    default:
      return event.type.startsWith('assistant.') ? { ...now, doing: 'thinking' } : now;
  }
}

function enter(activity: Activity, state: string, at: number): Activity {
  const entered = { ...activity, since: at, tools: [], tokens: 0, doing: 'starting' } as const;
  if (state === 'running') return { ...entered, phase: 'working' };
  if (state === 'queued') return { ...entered, phase: 'queued' };
  return { ...entered, phase: state === 'waiting_user' ? 'waiting' : 'over' };
}

// Returns null when no work is in progress.
export function progressLine(activity: Activity, nowMs: number, style: Style): string | null {
  if (activity.phase === 'waiting' || activity.phase === 'over') return null;
  const width = style.width - 1;
  if (width < 1) return '';
  const tool = activity.phase === 'working' ? activity.tools.at(-1) : undefined;
  const elapsed = nowMs - (tool ?? activity).since;
  const facts = [
    elapsed < 1000 ? '' : formatAge(elapsed),
    activity.tools.length > 1 ? terminalTexts().moreRunning(activity.tools.length - 1) : '',
    activity.attempt > 1 ? terminalTexts().turn(activity.attempt) : '',
    activity.tokens > 0 ? terminalTexts().tokens(formatCount(activity.tokens)) : '',
  ].filter((fact) => fact !== '');
  const call = tool && `${tool.name}: ${tool.what}`.replace(/: $/, '');
  const label = call === undefined ? oneLine(doing(activity), width) : exactLine(call, width);
  const tail = () => facts.map((fact) => ` · ${fact}`).join('');
  // Drops facts from the end, where they matter least.
  while (facts.length > 0 && width - 2 - textWidth(tail()) < Math.min(LEAST, textWidth(label))) facts.pop();
  const frame = FRAMES[Math.floor(Math.max(0, nowMs) / FRAME_MS) % FRAMES.length] ?? '';
  const text = fitLine(label, width - 2 - textWidth(tail()));
  return width < 3
    ? paint(style, 'cyan', frame)
    : `${paint(style, 'cyan', frame)} ${text}${paint(style, 'dim', tail())}`;
}

function doing({ phase, doing, engine }: Activity): string {
  const texts = terminalTexts();
  if (phase === 'queued') return texts.queued;
  return doing === 'starting' && engine !== null ? texts.starting(engine) : texts.doing[doing];
}
