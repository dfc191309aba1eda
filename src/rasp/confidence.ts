// How sure a rule is of what it reports. One table, fixed numbers: a reader can rely on them.

export const CONFIDENCE = {
  // The engine's own structured event, every field as recorded.
  structured: 1,
  // Structured, but put together from several events, or decoded after cleaning the line (ANSI, byte order mark).
  derived: 0.9,
  // The main object was found, with other text around it.
  surrounded: 0.8,
  // Text that is the model's by the engine's own convention (iFlow's stdout, with its block seen).
  convention: 0.7,
  // Taken from a fenced block or a fragment after the main object could not be decoded.
  salvaged: 0.5,
  // The model's text by convention, while nothing has confirmed it yet.
  unconfirmed: 0.4,
  // Taken for the model's text although the expected structure never came.
  guessed: 0.3,
  // Nothing is claimed but that these bytes were printed.
  raw: 1,
  // A diagnostic says only that something was seen.
  diagnostic: 1,
} as const;
