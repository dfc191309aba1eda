// Takes secrets out of text that Parley writes itself. Engine output is never altered.
// Every pattern is bounded, so that text of any kind is read in one go.

const SECRETS: readonly RegExp[] = [
  /\b(?:sk|pk|rk)-[A-Za-z0-9_-]{8,}/g,
  /\bAIza[A-Za-z0-9_-]{20,}/g,
  /\b(?:gh[pousr]|github_pat)_[A-Za-z0-9_]{16,}/g,
  // Our own: tokens, browser sessions, sign-in codes, and secrets of webhooks.
  /\b(?:prl|prs|prc|whsec)_[A-Za-z0-9_+/=-]{16,}/g,
  /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+)?/g,
];

// What follows such a word is a secret if it looks like one: long, and with a digit in it.
const NAMED: readonly RegExp[] = [
  // The password in an address, whatever it looks like: up to the last @, since it may have one itself, and slashes.
  // Rather a host too much than a letter of it; only what is a page on a port is left.
  new RegExp(
    [
      // A page on a port.
      String.raw`(\b(?!(?:https?|wss?):\/\/(?:localhost|[^\s/:@]{0,100}\.[^\s/:@]{0,100})`,
      String.raw`:\d{1,5}(?:\/|\?[\w.-]{1,50}=))`,
      String.raw`[a-z][a-z0-9+.-]{0,20}:\/\/(?!\[)[^\s/:"'\x60<>]{0,100}:)[^\s"'\x60<>]{1,500}(?=@)`,
    ].join(''),
    'gi',
  ),
  // And up to the first one, with quotes and brackets in it.
  /(\b[a-z][a-z0-9+.-]{0,20}:\/\/[^\s/:@"'`<>]{0,100}:)(?:(?!["'`],)[^\s/@?]){1,200}(?=@)/gi,
  /(\bBearer[ \t]{1,4})[A-Za-z0-9._~+/=-]{8,}/gi,
  /(\b(?:api[_-]?key|token|secret|password)["']?[ \t]{0,4}[=:][ \t]{0,4}["']?)(?=[^\s"',;&]{0,200}\d)[^\s"',;&]{8,}/gi,
];

export function redact(text: string): string {
  const named = NAMED.reduce((rest, pattern) => rest.replace(pattern, '$1[redacted]'), text);
  return SECRETS.reduce((rest, pattern) => rest.replace(pattern, '[redacted]'), named);
}

// Long text is cut before it goes into a message of ours; the events have it whole.
export function clip(text: string, chars: number): string {
  return text.length > chars ? `${text.slice(0, chars)}…` : text;
}
