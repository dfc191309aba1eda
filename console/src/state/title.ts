// The name of the page that is shown, as the tab of the browser has it; how much waits stands before it.
import { computed, signal } from '@preact/signals';
import { route } from './router.js';

const NAMES = {
  inbox: 'Inbox',
  runs: 'Runs',
  new: 'New run',
  engines: 'Engines',
  run: 'Run',
  nowhere: 'Nothing here',
} as const;
const LONGEST = 50;

// What the run on the page was asked to do, once that is known.
export const runPrompt = signal<string | null>(null);

export const pageName = computed(() => {
  const { page } = route.value;
  const prompt = page === 'run' ? runPrompt.value?.trim().split('\n', 1)[0] : undefined;
  if (!prompt) return NAMES[page];
  return prompt.length > LONGEST ? `${prompt.slice(0, LONGEST)}…` : prompt;
});
