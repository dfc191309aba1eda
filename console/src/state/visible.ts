// Signs that one does not see but that change what one sees: named instead of obeyed. A command must read as what it is.

// Those that turn the direction of the text after them.
export function nameTurns(text: string): string {
  return text.replaceAll(/[\u202a-\u202e\u2066-\u2069]/g, nameOf);
}

// As text that does nothing to the text around it, whatever the bytes are.
export function showBytes(bytes: Uint8Array): string {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
  return text.replaceAll(/[^\P{Cc}\n\t]/gu, (sign) => (sign < ' ' ? String.fromCodePoint(0x2400 + (sign.codePointAt(0) ?? 0)) : nameOf(sign))).replaceAll(/\p{Cf}|[\u2028\u2029]/gu, nameOf);
}

function nameOf(sign: string): string {
  return `⟨U+${(sign.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`;
}
