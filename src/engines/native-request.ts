// What an engine itself asks a person for in the middle of its turn, and waits for the answer: the request as its
// output shows it.
import type { JsonObject } from '../kernel/json.js';
import type { Question } from '../run/interaction.js';

export interface NativeRequest {
  // As the engine numbered it; an id comes again in another process.
  readonly id: string | number;
  readonly method: string;
  readonly params: JsonObject;
  // Null: nobody can be asked this; it is to be refused.
  readonly question: Question | null;
}
