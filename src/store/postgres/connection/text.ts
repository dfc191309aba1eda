// Encodes text for columns that are compared: PostgreSQL accepts no NUL, and UTF-8 has no lone surrogates. Both are
// escaped, and so is the backslash, so that two texts are equal in the database exactly if they are equal. JSON needs
// none of this: it has its own escapes.
import { createHash } from 'node:crypto';

const ODD = /[\0\\]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

export function toText(text: string): string {
  return text.replace(ODD, (odd) => (odd === '\\' ? '\\\\' : `\\u${odd.charCodeAt(0).toString(16).padStart(4, '0')}`));
}

export function fromText(text: string): string {
  return text.replace(/\\(?:\\|u([0-9a-f]{4}))/g, (_, code: string | undefined) =>
    code === undefined ? '\\' : String.fromCharCode(Number.parseInt(code, 16)),
  );
}

// The key by which a label is found: its value may be longer than an index allows.
export function pairKey(key: string, value: string): string {
  return createHash('sha256')
    .update(JSON.stringify([key, value]))
    .digest('hex');
}
