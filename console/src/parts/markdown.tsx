// Markdown of an agent, as HTML that can do nothing: no script, no style, no picture, no frame; links open elsewhere
// and tell nobody where they came from.
import DOMPurify from 'dompurify';
import { Marked } from 'marked';
import type { JSX } from 'preact';
import type { TrustedHTML, TrustedTypesWindow } from 'trusted-types/lib/index.js';
import { useMemo } from 'preact/hooks';
import { nameInProse } from '../../../src/kernel/visible-text.js';

// Nothing that was said is left out: HTML, pictures and definitions are shown as the text they are, a link with its
// target, and a block of code with what stands behind its opening fence.
const marked = new Marked({
  gfm: true,
  breaks: true,
  async: false,
  tokenizer: { def: () => undefined },
  renderer: {
    html: ({ text }) => escapeHtml(text),
    image: ({ raw }) => escapeHtml(raw),
    code: ({ text, lang = '' }) =>
      `${lang === '' ? '' : `<p><code>${escapeHtml(lang)}</code></p>`}<pre><code>${escapeHtml(text)}</code></pre>`,
    link({ href, title, text, tokens }) {
      const target = [text === href ? '' : href, title ?? ''].filter((part) => part !== '').join(' ');
      const shown = this.parser.parseInline(tokens);
      return `<a href="${escapeHtml(href)}">${shown}</a>${target === '' ? '' : ` (${escapeHtml(target)})`}`;
    },
  },
});

const TAGS = [
  'p',
  'br',
  'strong',
  'em',
  'del',
  'code',
  'pre',
  'ul',
  'ol',
  'li',
  'blockquote',
  'h1',
  'h2',
  'h3',
  'h4',
  'h5',
  'h6',
  'hr',
  'a',
  'table',
  'thead',
  'tbody',
  'tr',
  'th',
  'td',
  'input',
];

// Browsers without Trusted Types have no factory for policies.
type MaybeTrusting = Window & Partial<Pick<TrustedTypesWindow, 'trustedTypes'>>;

// The only way to make HTML in the console: the browser refuses text that did not come through this policy (Trusted
// Types). It passes what it is given, so it must stay in this file, which gives it to nothing but the sanitizer and
// escaped text.
const policy = (window as MaybeTrusting).trustedTypes?.createPolicy('parley-markdown', {
  createHTML: (html) => html,
  createScript: () => '',
  createScriptURL: () => '',
});

const purifier = DOMPurify(window);
purifier.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName === 'A') {
    if (!leadsElsewhere(node.getAttribute('href') ?? '')) node.removeAttribute('href');
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

// A link that an agent wrote must not open a page of this server: neither a path, nor what a browser takes for one
// (http:/path, //host, http:\\path), nor the server's own address.
export function leadsElsewhere(href: string): boolean {
  if (/^mailto:/i.test(href)) return true;
  if (!/^https?:\/\/[^/\\]/i.test(href) || !URL.canParse(href, location.href)) return false;
  return new URL(href, location.href).host !== location.host;
}

// To make more of it pretty would hold the page up: the time grows with the square of some signs.
const MAX_CHARS = 20_000;
const MAX_SIGNS = 1000;

export function toSafeHtml(text: string): SafeHtml {
  if (text.length > MAX_CHARS || (text.match(/[_*`~[\]>|-]/g)?.length ?? 0) > MAX_SIGNS) return asText(text);
  try {
    return toHtml(text);
  } catch {
    // Nested too deeply, say. What was said is shown all the same.
    return asText(text);
  }
}

// Where the browser has no Trusted Types, plain text.
type SafeHtml = string | TrustedHTML;

function asText(text: string): SafeHtml {
  const html = `<pre tabindex="0">${escapeHtml(text)}</pre>`;
  return policy?.createHTML(html) ?? html;
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

const RULES = {
  ALLOWED_TAGS: TAGS,
  ALLOWED_ATTR: ['href', 'type', 'checked', 'align', 'start'],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
};
// Without a policy of ours the sanitizer would make one of its own, which the page forbids.
const rules = policy ? { ...RULES, TRUSTED_TYPES_POLICY: policy } : RULES;

// Letters and digits. The numbers and boxes of list items are drawn by the browser.
const LIST_ITEM = /^[ \t>]*(?:(?:\d{1,9}[.)]|[-*+])[ \t]+(?:\[[ xX]\][ \t]+)?)+/gm;
const wordsOf = (text: string): string => text.replaceAll(/[^\p{L}\p{N}]/gu, '');

// Text is shown as it is if a word of it would be missing, whichever rule of Markdown leaves it out.
function toHtml(text: string): SafeHtml {
  const html = marked.parse(text) as string;
  const shown = purifier.sanitize(html, { ...rules, RETURN_DOM_FRAGMENT: true }).textContent;
  if (wordsOf(shown ?? '') !== wordsOf(text.replaceAll(LIST_ITEM, ''))) return asText(text);
  return policy ? purifier.sanitize(html, { ...rules, RETURN_TRUSTED_TYPE: true }) : purifier.sanitize(html, rules);
}

const kept = new WeakMap<object, { readonly text: string; readonly html: SafeHtml }>();

function htmlOf(text: string, owner: object | undefined): SafeHtml {
  const known = owner && kept.get(owner);
  if (known?.text === text) return known.html;
  const html = toSafeHtml(nameInProse(text));
  if (owner) kept.set(owner, { text, html });
  return html;
}

// What it was made into is kept for as long as its owner is there: a row that leaves the screen comes back without that
// work.
export function Markdown({ text, cachedBy }: { readonly text: string; readonly cachedBy?: object }): JSX.Element {
  const html = useMemo(() => htmlOf(text, cachedBy), [text, cachedBy]);
  return <div class="prose" dangerouslySetInnerHTML={{ __html: html as string }} />;
}
