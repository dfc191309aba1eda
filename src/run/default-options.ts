// The runtime options of a run that sets none. Kept apart from their schema: commands that only read runs need a
// default but not the schema library, which takes longer to load than the rest of such a command.
import { DEFAULT_MAX_ATTEMPT } from './attempt.js';

export const DEFAULT_OPTIONS = {
  interactive_require_user_reply: true,
  session_timeout_sec: 1200,
  auto_decide_policy: 'engine_judgement',
  max_attempt: DEFAULT_MAX_ATTEMPT,
  turn_timeout_sec: null,
  idle_timeout_sec: 1800,
  tool_timeout_sec: 14_400,
  silence_notice_sec: 1800,
} as const;

// A hundred years: even "for ever" must be a time that can be stored.
export const LONGEST_SEC = 3_153_600_000;
