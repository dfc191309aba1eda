// Markdown of an agent, as HTML that can do nothing: no script, no style, no picture, no frame; links open elsewhere and tell nobody
// where they came from.
import DOMPurify from 'dompurify';
import { Marked } from 'marked';
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { nameInProse } from '../../../src/kernel/visible-text.js';

// HTML of its own is shown as the text it is: nothing that was said is left out, and nothing of it is ever built.
const marked = new Marked({ gfm: true, breaks: true, async: false, renderer: { html: ({ text }) => escapeHtml(text) } });

const TAGS = ['p', 'br', 'strong', 'em', 'del', 'code', 'pre', 'ul', 'ol', 'li', 'blockquote', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'a', 'table', 'thead', 'tbody', 'tr', 'th', 'td', 'input'];

const purifier = DOMPurify(window);
purifier.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName === 'A') {
    // A page of the server itself must not be reached by a word of an agent.
    if (!/^(?:https?:|mailto:)/i.test(node.getAttribute('href') ?? '')) node.removeAttribute('href');
    node.setAttribute('target', '_blank');
    node.setAttribute('rel', 'noopener noreferrer nofollow');
  }
  if (node.tagName === 'INPUT') {
    if (node.getAttribute('type') !== 'checkbox') node.remove();
    else {
      node.setAttribute('disabled', '');
      node.setAttribute('aria-label', node.hasAttribute('checked') ? 'done' : 'to do');
    }
  }
  // One that is wider than the page is scrolled by keys, too.
  if (node.tagName === 'PRE') node.setAttribute('tabindex', '0');
});

// To make more of it pretty would hold the page up: the time grows with the square of some signs.
const MAX_CHARS = 20_000;
const MAX_SIGNS = 1000;

export function toSafeHtml(text: string): string {
  if (text.length > MAX_CHARS || (text.match(/[_*`~[\]>|-]/g)?.length ?? 0) > MAX_SIGNS) return asText(text);
  try {
    return toHtml(text);
  } catch {
    // Nested too deeply, say. What was said is shown all the same.
    return asText(text);
  }
}

function asText(text: string): string {
  return `<pre tabindex="0">${escapeHtml(text)}</pre>`;
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function toHtml(text: string): string {
  return purifier.sanitize(marked.parse(text) as string, { ALLOWED_TAGS: TAGS, ALLOWED_ATTR: ['href', 'type', 'checked', 'align', 'start'], ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false });
}

const kept = new WeakMap<object, { readonly text: string; readonly html: string }>();

function htmlOf(text: string, owner: object | undefined): string {
  const known = owner && kept.get(owner);
  if (known?.text === text) return known.html;
  const html = toSafeHtml(nameInProse(text));
  if (owner) kept.set(owner, { text, html });
  return html;
}

// What it was made into is kept for as long as its owner is there: a row that leaves the screen comes back without that work.
export function Markdown({ text, cachedBy }: { readonly text: string; readonly cachedBy?: object }): JSX.Element {
  const html = useMemo(() => htmlOf(text, cachedBy), [text, cachedBy]);
  return <div class="prose" dangerouslySetInnerHTML={{ __html: html }} />;
}
