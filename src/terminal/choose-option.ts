// Finds the option that a typed text means. A typed answer never silently becomes another option: the exact text of an
// option has priority, then its number, then its text in another case if only one option matches. An ambiguous text is
// reported with all its readings: "2" beside the labels "2.0" and "1.0" may mean either. "#2" always means the second
// option, "\"2\"" always the option with the text 2.
import type { Json } from '../kernel/json.js';

export interface Option {
  readonly label: string;
  readonly value: Json;
}

export type Choice =
  // The place counts from 1.
  | { readonly kind: 'option'; readonly place: number; readonly option: Option }
  | { readonly kind: 'ambiguous'; readonly readings: readonly { readonly place: number; readonly option: Option }[] }
  // A number that no option has.
  | { readonly kind: 'none'; readonly number: number }
  | { readonly kind: 'text' };

export function chooseOption(options: readonly Option[], text: string): Choice {
  const exact = placesOf(options, (label) => label === text);
  const number = /^\d{1,9}$/.test(text) ? Number(text) : null;
  const byNumber = number === null ? undefined : options[number - 1];
  if (exact.length > 0) {
    const places = byNumber && number !== null ? [...new Set([...exact, number])] : exact;
    return choiceOf(options, places);
  }
  const marked = /^#(\d{1,9})$/.exec(text)?.[1];
  if (marked !== undefined) return atPlace(options, Number(marked));
  const quoted = /^"(.*)"$/s.exec(text)?.[1];
  const named = quoted === undefined ? [] : placesOf(options, (label) => label === quoted);
  if (named.length > 0) return choiceOf(options, named);
  if (number !== null)
    return byNumber ? choiceOf(options, [number, ...placesOfNumber(options, text)]) : atPlace(options, number);
  const alike = placesOf(options, (label) => label.toLowerCase() === text.toLowerCase());
  return alike.length === 0 ? { kind: 'text' } : choiceOf(options, alike);
}

// The places of options that send this number or whose text starts with it.
function placesOfNumber(options: readonly Option[], text: string): number[] {
  const begins = new RegExp(`^${text}(?!\\d)`);
  return options.flatMap(({ label, value }, index) =>
    String(value) === text || begins.test(label.trim()) ? [index + 1] : [],
  );
}

export function atPlace(options: readonly Option[], place: number): Choice {
  const option = options[place - 1];
  return option ? { kind: 'option', place, option } : { kind: 'none', number: place };
}

function placesOf(options: readonly Option[], isMeant: (label: string) => boolean): number[] {
  return options.flatMap(({ label }, index) => (isMeant(label.trim()) ? [index + 1] : []));
}

// Options that send the same value count as one.
function choiceOf(options: readonly Option[], places: readonly number[]): Choice {
  const readings = places.flatMap((place) => {
    const option = options[place - 1];
    return option ? [{ place, option }] : [];
  });
  const [first] = readings;
  const values = new Set(readings.map(({ option }) => JSON.stringify(option.value)));
  if (!first) return { kind: 'text' };
  return values.size === 1 ? { kind: 'option', ...first } : { kind: 'ambiguous', readings };
}
