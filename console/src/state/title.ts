// The name of the current page, for the title of the browser tab.
import { computed, signal } from '@preact/signals';
import { t } from '../language/language.js';
import { route } from './router.js';

const MAX_CHARS = 50;

// The prompt of the run on the page, once it is loaded.
export const runPrompt = signal<string | null>(null);

export const pageName = computed(() => {
  const { page } = route.value;
  const prompt = page === 'run' ? runPrompt.value?.trim().split('\n', 1)[0] : undefined;
  if (!prompt) return t.pages[page];
  return prompt.length > MAX_CHARS ? `${prompt.slice(0, MAX_CHARS)}…` : prompt;
});
