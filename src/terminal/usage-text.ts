// Renders the tokens and cost of a turn on one line. Adds up the steps of engines that report each step.
import type { FcmpData } from '../fcmp/event.js';
import { formatCount, formatDuration } from './format-time.js';
import { oneLine } from './safe-text.js';
import { paint, type Style } from './style.js';
import { terminalTexts } from './texts.js';

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

// Figures of the whole turn replace those of its steps.
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
  const texts = terminalTexts();
  const parts = [
    input === undefined
      ? ''
      : `${texts.inputTokens(formatCount(input))}${cached ? texts.cachedTokens(formatCount(cached)) : ''}`,
    output === undefined
      ? ''
      : `${texts.outputTokens(formatCount(output))}${reasoning ? texts.thinkingTokens(formatCount(reasoning)) : ''}`,
    input === undefined && output === undefined && usage.total_tokens !== undefined
      ? formatCount(usage.total_tokens)
      : '',
  ].filter((part) => part !== '');
  const facts = [
    parts.length > 0
      ? `${texts.tokenFigures(parts.join(texts.and))}${usage.scope === 'thread' ? texts.soFar : ''}`
      : '',
    usage.cost_usd ? `$${usage.cost_usd.toFixed(usage.cost_usd < 0.1 ? 4 : 2)}` : '',
    usage.duration_ms === undefined ? '' : formatDuration(usage.duration_ms),
    usage.model ?? '',
  ].filter((fact) => fact !== '');
  return paint(style, 'dim', oneLine(facts.join(' · '), style.width));
}
