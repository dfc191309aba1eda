// Removes secrets from text that Parley itself writes. Engine output is never altered. Every pattern has a length
// limit, so that hostile text cannot make a match slow.

const SECRETS: readonly RegExp[] = [
  /\b(?:sk|pk|rk)-[A-Za-z0-9_-]{8,}/g,
  /\bAIza[A-Za-z0-9_-]{20,}/g,
  /\b(?:gh[pousr]|github_pat)_[A-Za-z0-9_]{16,}/g,
  // Our own tokens, browser sessions, sign-in codes and webhook secrets.
  /\b(?:prl|prs|prc|whsec)_[A-Za-z0-9_+/=-]{16,}/g,
  /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+)?/g,
];

// The value after such a word is redacted if it looks like a secret: long, and with a digit in it.
const NAMED: readonly RegExp[] = [
  // The password in a URL, in any form: everything up to the last @, because a password may contain @ and slashes.
  // Rather removes a host name than leaves a character of a password; only a URL of a page with a port is kept.
  new RegExp(
    [
      // A page with a port.
      String.raw`(\b(?!(?:https?|wss?):\/\/(?:localhost|[^\s/:@]{0,100}\.[^\s/:@]{0,100})`,
      String.raw`:\d{1,5}(?:\/|\?[\w.-]{1,50}=))`,
      String.raw`[a-z][a-z0-9+.-]{0,20}:\/\/(?!\[)[^\s/:"'\x60<>]{0,100}:)[^\s"'\x60<>]{1,500}(?=@)`,
    ].join(''),
    'gi',
  ),
  // The same up to the first @, with quotes and brackets allowed in the password.
  /(\b[a-z][a-z0-9+.-]{0,20}:\/\/[^\s/:@"'`<>]{0,100}:)(?:(?!["'`],)[^\s/@?]){1,200}(?=@)/gi,
  /(\bBearer[ \t]{1,4})[A-Za-z0-9._~+/=-]{8,}/gi,
  /(\b(?:api[_-]?key|token|secret|password)["']?[ \t]{0,4}[=:][ \t]{0,4}["']?)(?=[^\s"',;&]{0,200}\d)[^\s"',;&]{8,}/gi,
];

export function redact(text: string): string {
  const named = NAMED.reduce((rest, pattern) => rest.replace(pattern, '$1[redacted]'), text);
  return SECRETS.reduce((rest, pattern) => rest.replace(pattern, '[redacted]'), named);
}

// Shortens text for one of our messages; the events have the full text.
export function clip(text: string, chars: number): string {
  return text.length > chars ? `${text.slice(0, chars)}…` : text;
}
