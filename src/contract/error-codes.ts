// Generated from contract/errors.json and contract/sticky.json by `npm run generate`. Do not edit.

export type RunErrorCode =
  | "SESSION_RESUME_FAILED"
  | "INTERACTIVE_MAX_ATTEMPT_EXCEEDED"
  | "ORCHESTRATOR_RESTART_INTERRUPTED"
  | "WORKING_FOLDER_UNUSABLE"
  | "ENGINE_SETTINGS_INVALID"
  | "ENGINE_NOT_FOUND"
  | "ENGINE_AUTH_REQUIRED"
  | "ENGINE_TURN_FAILED"
  | "ENGINE_EXITED"
  | "TURN_TIMEOUT"
  | "ENGINE_IDLE_TIMEOUT"
  | "TOOL_CALL_TIMEOUT"
  | "OUTPUT_INVALID"
  | "COMPLETION_UNKNOWN"
  | "AUTO_MODE_CANNOT_ASK"
  | "CANCELED_BY_USER"
  | "DISK_FULL"
  | "INTERNAL";

export type StickyErrorCode =
  | "INTERACTION_WAIT_TIMEOUT"
  | "INTERACTION_PROCESS_LOST";

export type RequestErrorCode =
  | "INVALID_ARGUMENT"
  | "UNKNOWN_ENGINE"
  | "ENGINE_NOT_INSTALLED"
  | "ENGINE_LOGGED_OUT"
  | "ILLEGAL_TRANSITION"
  | "GUARD_REFUSED"
  | "HANDLE_MISMATCH"
  | "REQUEST_ID_CONFLICT"
  | "RUN_NOT_FOUND"
  | "INTERACTION_NOT_FOUND"
  | "RUN_NOT_INTERACTIVE"
  | "RUN_NOT_WAITING"
  | "INTERACTION_STALE"
  | "REPLY_CONFLICT"
  | "APPROVAL_INVALID"
  | "RUN_NOT_ENDED"
  | "NO_SESSION"
  | "FORK_UNSUPPORTED"
  | "QUEUE_FULL"
  | "SESSION_IN_USE"
  | "CURSOR_BEYOND_END"
  | "RUN_ENDED"
  | "DATA_DIR_IN_USE"
  | "DATA_DIR_UNUSABLE"
  | "WORKER_NOT_STARTED"
  | "DATABASE_TOO_NEW"
  | "DATABASE_NOT_MIGRATED"
  | "HOSTS_DIFFER"
  | "IMPORT_INCOMPLETE"
  | "UNAUTHORIZED"
  | "TOO_MANY_ATTEMPTS"
  | "FORBIDDEN"
  | "HOST_NOT_ALLOWED"
  | "ORIGIN_NOT_ALLOWED"
  | "PATH_NOT_ALLOWED"
  | "NOT_FOUND"
  | "REQUEST_TIMEOUT"
  | "BODY_TOO_LARGE"
  | "UNSUPPORTED_MEDIA_TYPE"
  | "HEADERS_TOO_LARGE"
  | "TOO_MANY_STREAMS"
  | "TOO_MANY_REQUESTS"
  | "METHOD_NOT_ALLOWED"
  | "VERIFY_FAILED"
  | "SHUTTING_DOWN"
  | "STORE_UNAVAILABLE"
  | "FILES_GONE"
  | "FILES_UNREACHABLE";

export type DiagnosticCode =
  | "LINE_UNDECODABLE"
  | "LINE_TRUNCATED"
  | "LINE_TOO_LONG"
  | "NESTING_TOO_DEEP"
  | "UNKNOWN_EVENT_TYPE"
  | "FIELD_DRIFT"
  | "INVALID_UTF8"
  | "NUL_BYTES"
  | "CRLF_LINES"
  | "BYTE_ORDER_MARK"
  | "ANSI_SEQUENCES"
  | "UNTERMINATED_LAST_LINE"
  | "STDERR_TEXT"
  | "MESSAGE_TRUNCATED"
  | "SESSION_ID_CHANGED"
  | "SESSION_ID_INVALID"
  | "SESSION_ID_MISSING"
  | "RESUME_NOT_PROVED"
  | "TURN_SILENT"
  | "ASK_TOOL_NOT_LISTED"
  | "ASK_WITNESS_MISSING"
  | "TEXT_OUTSIDE_JSON"
  | "JSON_FROM_FENCE"
  | "JSON_FROM_FRAGMENT"
  | "BLOCK_MISSING"
  | "BLOCK_UNDECODABLE"
  | "ENGINE_WARNING"
  | "ENGINE_ERROR"
  | "RAW_DUPLICATE_SUPPRESSED";

// Why a run fails, by code.
export const RUN_ERRORS: Readonly<Record<RunErrorCode, ErrorMeaning>> = {
  "SESSION_RESUME_FAILED": {
    "retryable": true,
    "meaning": "The engine's session cannot be continued: no usable session id, another id came back, its working folder or its home is another or gone, or the resumed turn failed before the engine confirmed the session. details.cause has the reason: code and message."
  },
  "INTERACTIVE_MAX_ATTEMPT_EXCEEDED": {
    "retryable": false,
    "meaning": "The run would have to wait again, but max_attempt turns are used up."
  },
  "ORCHESTRATOR_RESTART_INTERRUPTED": {
    "retryable": true,
    "meaning": "Parley stopped while the run was queued or running. With `details.reason` HOST_CRASHED_TWICE: it crashed twice while it was about to start this turn or ran it, so the run is not started again by itself."
  },
  "WORKING_FOLDER_UNUSABLE": {
    "retryable": true,
    "meaning": "The folder that the run works in is gone, is no folder, cannot be entered, or has programs in it that the engine would execute whatever the permission is."
  },
  "ENGINE_SETTINGS_INVALID": {
    "retryable": true,
    "meaning": "A settings file of the user for this engine cannot be read; the message names it."
  },
  "ENGINE_NOT_FOUND": {
    "retryable": true,
    "meaning": "The engine's program is not installed or not executable."
  },
  "ENGINE_AUTH_REQUIRED": {
    "retryable": true,
    "meaning": "The engine is not logged in, or its key was refused."
  },
  "ENGINE_TURN_FAILED": {
    "retryable": true,
    "meaning": "The engine itself reported that the turn failed."
  },
  "ENGINE_EXITED": {
    "retryable": true,
    "meaning": "The engine's process ended with a non-zero code or by a signal, without its own report of a failure."
  },
  "TURN_TIMEOUT": {
    "retryable": true,
    "meaning": "The turn took longer than turn_timeout_sec and was ended. There is no such limit by default."
  },
  "ENGINE_IDLE_TIMEOUT": {
    "retryable": true,
    "meaning": "The engine printed nothing for idle_timeout_sec, while no tool call was known to be running, and was ended."
  },
  "TOOL_CALL_TIMEOUT": {
    "retryable": true,
    "meaning": "A tool call of the engine ran for tool_timeout_sec without output, and the engine was ended."
  },
  "OUTPUT_INVALID": {
    "retryable": true,
    "meaning": "The result does not fit the output_schema, or checking it took longer than 3 seconds."
  },
  "COMPLETION_UNKNOWN": {
    "retryable": true,
    "meaning": "The process exited with code 0, but nothing in its output shows that the turn succeeded."
  },
  "AUTO_MODE_CANNOT_ASK": {
    "retryable": false,
    "meaning": "The agent asked a question in a run that was started in auto mode."
  },
  "CANCELED_BY_USER": {
    "retryable": false,
    "meaning": "Somebody canceled the run."
  },
  "DISK_FULL": {
    "retryable": true,
    "meaning": "The disk became full while the turn ran, so its output could not be stored. Free some space, then parley retry."
  },
  "INTERNAL": {
    "retryable": true,
    "meaning": "A defect in Parley; the message has an id to report."
  }
};

export const STICKY_ERRORS: Readonly<Record<StickyErrorCode, ErrorMeaning>> = {
  "INTERACTION_WAIT_TIMEOUT": {
    "retryable": true,
    "meaning": "Nobody answered before the session timeout; the resident process was ended."
  },
  "INTERACTION_PROCESS_LOST": {
    "retryable": true,
    "meaning": "The resident process exited while the run waited for an answer."
  }
};

export interface ErrorMeaning {
  readonly retryable: boolean;
  readonly meaning: string;
}

export const HTTP_STATUS = {
  "INTERNAL": 500,
  "INVALID_ARGUMENT": 400,
  "UNKNOWN_ENGINE": 400,
  "ENGINE_NOT_INSTALLED": 409,
  "ENGINE_LOGGED_OUT": 409,
  "ILLEGAL_TRANSITION": 409,
  "GUARD_REFUSED": 409,
  "HANDLE_MISMATCH": 409,
  "REQUEST_ID_CONFLICT": 409,
  "RUN_NOT_FOUND": 404,
  "INTERACTION_NOT_FOUND": 404,
  "RUN_NOT_INTERACTIVE": 400,
  "RUN_NOT_WAITING": 409,
  "INTERACTION_STALE": 409,
  "REPLY_CONFLICT": 409,
  "APPROVAL_INVALID": 400,
  "RUN_NOT_ENDED": 409,
  "NO_SESSION": 409,
  "FORK_UNSUPPORTED": 409,
  "QUEUE_FULL": 429,
  "SESSION_IN_USE": 409,
  "CURSOR_BEYOND_END": 409,
  "RUN_ENDED": 409,
  "DATA_DIR_IN_USE": 409,
  "DATA_DIR_UNUSABLE": 500,
  "WORKER_NOT_STARTED": 500,
  "DATABASE_TOO_NEW": 500,
  "DATABASE_NOT_MIGRATED": 500,
  "HOSTS_DIFFER": 500,
  "IMPORT_INCOMPLETE": 409,
  "UNAUTHORIZED": 401,
  "TOO_MANY_ATTEMPTS": 429,
  "FORBIDDEN": 403,
  "HOST_NOT_ALLOWED": 421,
  "ORIGIN_NOT_ALLOWED": 403,
  "PATH_NOT_ALLOWED": 403,
  "NOT_FOUND": 404,
  "REQUEST_TIMEOUT": 408,
  "BODY_TOO_LARGE": 413,
  "UNSUPPORTED_MEDIA_TYPE": 415,
  "HEADERS_TOO_LARGE": 431,
  "TOO_MANY_STREAMS": 503,
  "TOO_MANY_REQUESTS": 429,
  "METHOD_NOT_ALLOWED": 405,
  "VERIFY_FAILED": 503,
  "SHUTTING_DOWN": 503,
  "STORE_UNAVAILABLE": 503,
  "FILES_GONE": 410,
  "FILES_UNREACHABLE": 503
} as const satisfies Record<RequestErrorCode | 'INTERNAL', number>;
