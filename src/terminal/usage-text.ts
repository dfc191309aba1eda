// Tokens and cost of a turn on one line. Engines that report each step are added up.
import type { FcmpData } from '../fcmp/event.js';
import { formatCount, formatDuration } from './format-time.js';
import { oneLine } from './safe-text.js';
import { paint, type Style } from './style.js';

export type Usage = FcmpData['usage'];

const FIGURES = [
  'input_tokens',
  'cached_input_tokens',
  'output_tokens',
  'reasoning_tokens',
  'total_tokens',
  'cost_usd',
  'duration_ms',
] as const;

// Figures of the whole turn win over those of its steps.
export function addUsage(kept: Usage | null, next: Usage): Usage {
  if (kept === null || next.scope !== 'step') return next;
  if (kept.scope !== 'step') return kept;
  const sum: Usage = { ...kept, ...next };
  for (const figure of FIGURES) {
    if (kept[figure] !== undefined) sum[figure] = kept[figure] + (next[figure] ?? 0);
  }
  return sum;
}

export function countTokens(usage: Usage): number {
  return usage.total_tokens ?? (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0);
}

export function renderUsage(usage: Usage, style: Style): string {
  const {
    input_tokens: input,
    cached_input_tokens: cached,
    output_tokens: output,
    reasoning_tokens: reasoning,
  } = usage;
  const parts = [
    input === undefined ? '' : `${formatCount(input)} in${cached ? ` (${formatCount(cached)} cached)` : ''}`,
    output === undefined ? '' : `${formatCount(output)} out${reasoning ? ` (${formatCount(reasoning)} thinking)` : ''}`,
    input === undefined && output === undefined && usage.total_tokens !== undefined
      ? formatCount(usage.total_tokens)
      : '',
  ].filter((part) => part !== '');
  const facts = [
    parts.length > 0 ? `tokens ${parts.join(', ')}${usage.scope === 'thread' ? ' so far' : ''}` : '',
    usage.cost_usd ? `$${usage.cost_usd.toFixed(usage.cost_usd < 0.1 ? 4 : 2)}` : '',
    usage.duration_ms === undefined ? '' : formatDuration(usage.duration_ms),
    usage.model ?? '',
  ].filter((fact) => fact !== '');
  return paint(style, 'dim', oneLine(facts.join(' · '), style.width));
}
