// Signs that one does not see but that change what one sees: named instead of obeyed. A command must read as what it is.

// Those that turn the direction of the text after them, and those that have no picture at all. Joiners and variation selectors make
// letters and emoji: they stay.
export function nameTurns(text: string): string {
  return text.replaceAll(/[\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0]/g, nameOf);
}

// As text that does nothing to the text around it, whatever the bytes are.
export function showBytes(bytes: Uint8Array): string {
  return decode(bytes).replaceAll(/[^\P{Cc}\n\t]/gu, (sign) => (sign < ' ' ? String.fromCodePoint(0x2400 + (sign.codePointAt(0) ?? 0)) : nameOf(sign))).replaceAll(/\p{Cf}|[\u2028\u2029]/gu, nameOf);
}

function nameOf(sign: string): string {
  return `⟨U+${(sign.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`;
}

// What is no UTF-8 is named byte by byte: the sign that stands for all of it would hide which it was.
function decode(bytes: Uint8Array): string {
  const strict = new TextDecoder('utf-8', { ignoreBOM: true, fatal: true });
  try {
    return strict.decode(bytes);
  } catch {
    // Rare: looked at sign by sign.
  }
  let text = '';
  for (let at = 0; at < bytes.length; ) {
    const size = signSize(bytes, at);
    text += size === 0 ? `⟨${(bytes[at] ?? 0).toString(16).toUpperCase().padStart(2, '0')}⟩` : strict.decode(bytes.subarray(at, at + size));
    at += Math.max(1, size);
  }
  return text;
}

// 0: no sign begins here.
function signSize(bytes: Uint8Array, at: number): number {
  const first = bytes[at] ?? 0;
  if (first < 0x80) return 1;
  const size = first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
  for (let next = 1; next < size; next += 1) if (((bytes[at + next] ?? 0) & 0xc0) !== 0x80) return 0;
  const second = bytes[at + 1] ?? 0;
  const isTooLong = (first === 0xe0 && second < 0xa0) || (first === 0xf0 && second < 0x90);
  const isNone = (first === 0xed && second > 0x9f) || (first === 0xf4 && second > 0x8f);
  return isTooLong || isNone ? 0 : size;
}
