// Signs that one does not see but that change what one sees: named instead of obeyed. A command must read as what it is.

// Those that turn the direction of the text after them, and those that have no picture at all. Joiners and variation selectors make
// letters and emoji: they stay.
export function nameTurns(text: string): string {
  return text.replaceAll(/[\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0]/g, nameOf);
}

// As text that does nothing to the text around it, whatever the bytes are.
export function showBytes(bytes: Uint8Array): string {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
  return text.replaceAll(/[^\P{Cc}\n\t]/gu, (sign) => (sign < ' ' ? String.fromCodePoint(0x2400 + (sign.codePointAt(0) ?? 0)) : nameOf(sign))).replaceAll(/\p{Cf}|[\u2028\u2029]/gu, nameOf);
}

function nameOf(sign: string): string {
  return `⟨U+${(sign.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`;
}
