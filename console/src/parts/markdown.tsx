// Shows an agent's Markdown as inert HTML: no scripts, styles, images or frames. Links open in a new tab and send no
// referrer.
import DOMPurify from 'dompurify';
import { Marked } from 'marked';
import type { JSX } from 'preact';
import type { TrustedHTML, TrustedTypesWindow } from 'trusted-types/lib/index.js';
import { useMemo } from 'preact/hooks';
import { t } from '../language/language.js';
import { nameInProse } from '../../../src/kernel/visible-text.js';

// Nothing is left out: HTML, images and definitions are shown as text, links with their target, and code blocks with
// the text after their opening fence.
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

// The only way to create HTML in the console: the browser refuses HTML that did not pass through this policy (Trusted
// Types). The policy does not check its input, so it must stay in this file, which passes it only sanitized HTML and
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
      node.setAttribute('aria-label', node.hasAttribute('checked') ? t.task.done : t.task.toDo);
    }
  }
  // Makes wide blocks scrollable with the keyboard.
  if (node.tagName === 'PRE') node.setAttribute('tabindex', '0');
});

// A link written by an agent must not open a page of this server: not as a path, not in a form that browsers read as a
// path (http:/path, //host, http:\\path), and not by the server's own address.
function leadsElsewhere(href: string): boolean {
  if (/^mailto:/i.test(href)) return true;
  if (!/^https?:\/\/[^/\\]/i.test(href) || !URL.canParse(href, location.href)) return false;
  return new URL(href, location.href).host !== location.host;
}

// Rendering more would block the page: the time grows with the square of some characters.
const MAX_CHARS = 20_000;
const MAX_SIGNS = 1000;

function toSafeHtml(text: string): SafeHtml {
  if (text.length > MAX_CHARS || (text.match(/[_*`~[\]>|-]/g)?.length ?? 0) > MAX_SIGNS) return asText(text);
  try {
    return toHtml(text);
  } catch {
    // For example, nested too deeply. The text is still shown.
    return asText(text);
  }
}

// A plain string if the browser has no Trusted Types.
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
// Without our policy the sanitizer would create its own, which the page forbids.
const rules = policy ? { ...RULES, TRUSTED_TYPES_POLICY: policy } : RULES;

// Compares letters and digits only. The browser draws the numbers and boxes of list items.
const LIST_ITEM = /^[ \t>]*(?:(?:\d{1,9}[.)]|[-*+])[ \t]+(?:\[[ xX]\][ \t]+)?)+/gm;
const wordsOf = (text: string): string => text.replaceAll(/[^\p{L}\p{N}]/gu, '');

// Shows the source text if the rendered Markdown would miss a word of it, for whatever reason.
function toHtml(text: string): SafeHtml {
  const html = marked.parse(text) as string;
  const shown = purifier.sanitize(html, { ...rules, RETURN_DOM_FRAGMENT: true }).textContent;
  if (wordsOf(shown ?? '') !== wordsOf(text.replaceAll(LIST_ITEM, ''))) return asText(text);
  return policy ? purifier.sanitize(html, { ...rules, RETURN_TRUSTED_TYPE: true }) : purifier.sanitize(html, rules);
}

const cache = new WeakMap<object, { readonly text: string; readonly html: SafeHtml }>();

function htmlOf(text: string, owner: object | undefined): SafeHtml {
  const known = owner && cache.get(owner);
  if (known?.text === text) return known.html;
  const html = toSafeHtml(nameInProse(text));
  if (owner) cache.set(owner, { text, html });
  return html;
}

// The HTML is cached as long as its owner exists, so a row that scrolls back into view is not rendered again.
export function Markdown({ text, cachedBy }: { readonly text: string; readonly cachedBy?: object }): JSX.Element {
  const html = useMemo(() => htmlOf(text, cachedBy), [text, cachedBy]);
  return <div class="prose" dangerouslySetInnerHTML={{ __html: html as string }} />;
}
