// How sure a rule is of the event it reports. One table with fixed numbers, so that readers can rely on them.

export const CONFIDENCE = {
  // The engine's own structured event, every field as recorded.
  structured: 1,
  // Structured, but assembled from several events, or decoded after cleaning the line (ANSI, byte order mark).
  derived: 0.9,
  // The main object was found, with other text around it.
  surrounded: 0.8,
  // Text that the engine's convention attributes to the model (iFlow's stdout, with its block seen).
  convention: 0.7,
  // Taken from a fenced block or a fragment after the main object could not be decoded.
  salvaged: 0.5,
  // Text that convention attributes to the model, not confirmed yet.
  unconfirmed: 0.4,
  // Treated as the model's text although the expected structure never came.
  guessed: 0.3,
  // Only claims that these bytes were printed.
  raw: 1,
  // A diagnostic only claims that something was observed.
  diagnostic: 1,
} as const;
