// Distinguishes a missing or refused login from other failures, by messages that the engines are known to print.
import type { EngineFailure } from '../run/evidence.js';

const AUTH = new RegExp(
  [
    String.raw`\b(?:status|http|error|code)\W{0,3}401\b`,
    String.raw`"code":\s*40[13]\b`,
    'permission_denied',
    'unauthori[sz]ed',
    'incorrect api key',
    'api key not valid',
    'invalid api key',
    'missing environment variable',
    'api key is missing',
    'not logged in',
    'auth method',
    'authentication required',
    'oauth2?_required',
    '令牌已过期',
  ].join('|'),
  'i',
);

// A busy service may suggest another login (Gemini does), but the login is not the problem then.
const BUSY = /\b429\b|rate limit|too many requests|quota|try again later|resource_exhausted/i;

export function classifyFailure(message: string, httpStatus?: number): EngineFailure {
  const auth =
    httpStatus === undefined
      ? AUTH.test(message) && !BUSY.test(message)
      : httpStatus === 401 || httpStatus === 403 || (AUTH.test(message) && httpStatus !== 429);
  return { kind: auth ? 'auth' : 'turn', message };
}
