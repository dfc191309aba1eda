// Takes secrets out of text that Parley writes itself. Engine output is never altered.

const SECRETS: readonly RegExp[] = [
  /\b(sk|pk|rk)-[A-Za-z0-9_-]{8,}/g,
  /\bAIza[A-Za-z0-9_-]{20,}/g,
  /\b(gh[pousr]|github_pat)_[A-Za-z0-9_]{16,}/g,
  /\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]+)?/g,
  /(?<=\bBearer\s+)[A-Za-z0-9._~+/=-]{8,}/gi,
  /(?<=\b(?:api[_-]?key|token|secret|password)["']?\s*[=:]\s*["']?)[^\s"',;&]{4,}/gi,
];

export function redact(text: string): string {
  return SECRETS.reduce((rest, secret) => rest.replace(secret, '[redacted]'), text);
}
