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
  | "ENGINE_RATE_LIMITED"
  | "ENGINE_SERVICE_FAILED"
  | "ENGINE_REQUEST_REJECTED"
  | "ENGINE_LIMIT_REACHED"
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
  | "RUN_RECOVERING"
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

// The messages of refused calls. A code with several messages has a name for each: CODE.name.
export const REQUEST_MESSAGES = {
  "INVALID_ARGUMENT.finish_question": "The agent asked a question: answer it, or cancel the run. finish only ends a conversation without an open question.",
  "INVALID_ARGUMENT.no_response": "The reply has no response: add one, or set finish to end the conversation.",
  "INVALID_ARGUMENT.answer_form": "The answer does not match the form of the question: {problem}",
  "INVALID_ARGUMENT.cwd_relative": "cwd cannot be {path}: it takes an absolute path.",
  "INVALID_ARGUMENT.cwd_nul": "cwd contains a NUL character, which no path may contain.",
  "INVALID_ARGUMENT.cwd_missing": "cwd {path} does not exist.",
  "INVALID_ARGUMENT.cwd_not_directory": "cwd {path} is not a directory.",
  "INVALID_ARGUMENT.cwd_moved": "The folder of run {run} ({path}) now resolves to {real}, which is another folder. Create a new run instead.",
  "INVALID_ARGUMENT.request": "{problem}",
  "INVALID_ARGUMENT.output_schema": "output_schema cannot be used: {problem}",
  "INVALID_ARGUMENT.model": "{model} is not a model name: {rule}. Use the name that the engine itself lists.",
  "INVALID_ARGUMENT.setting": "{file}: {problem}",
  "INVALID_ARGUMENT.settings_unreadable": "{file} cannot be read: {reason}",
  "INVALID_ARGUMENT.settings_not_json": "{file} is not JSON. Fix it, or delete it to use the defaults. ({reason})",
  "INVALID_ARGUMENT.webhook": "Webhook \"{webhook}\": {problem}",
  "INVALID_ARGUMENT.setting_unknown": "There is no setting \"{name}\". List all settings: parley config",
  "INVALID_ARGUMENT.setting_misspelled": "There is no setting \"{name}\". Did you mean \"{nearest}\"?",
  "INVALID_ARGUMENT.setting_group": "\"{name}\" is a group of settings. Name one of them: {settings}.",
  "INVALID_ARGUMENT.settings_locked": "Another process is changing the settings. Try again; if no other process is, delete {file}.",
  "INVALID_ARGUMENT.url_form": "The address of a request starts with /.",
  "INVALID_ARGUMENT.two_hosts": "The request has more than one Host header.",
  "INVALID_ARGUMENT.body_nesting": "The body is nested too deeply.",
  "INVALID_ARGUMENT.weak_token": "PARLEY_TOKEN is too easy to guess: {problem}. Make one: PARLEY_TOKEN=$(openssl rand -hex 32)",
  "INVALID_ARGUMENT.token_name": "A token's {field} is 1 to 100 letters, digits, spaces or . _ - @, not {value}.",
  "INVALID_ARGUMENT.token_reserved": "\"{name}\" names a token of Parley itself. Choose another name.",
  "INVALID_ARGUMENT.token_exists": "There is already a token named \"{name}\". To replace its value: parley token rotate \"{name}\". To revoke it: parley token rm \"{name}\".",
  "INVALID_ARGUMENT.token_unknown": "There is no token named \"{name}\". List them: parley token ls",
  "INVALID_ARGUMENT.network": "trusted_proxies: \"{network}\" is not an address or network; write {example}.",
  "INVALID_ARGUMENT.expectation": "The server supports no expectation other than 100-continue.",
  "INVALID_ARGUMENT.not_http": "The bytes are not a valid HTTP request.",
  "INVALID_ARGUMENT.body_not_json": "The body is not JSON.",
  "INVALID_ARGUMENT.body_empty": "The body is empty. Send JSON.",
  "INVALID_ARGUMENT.body_length": "The body does not have the length that its header states.",
  "INVALID_ARGUMENT.cut_off": "The request was cut off.",
  "INVALID_ARGUMENT.url": "The address cannot be read.",
  "INVALID_ARGUMENT.url_part": "A part of the address is too long.",
  "INVALID_ARGUMENT.key_header": "The header Idempotency-Key is empty or longer than 200 characters.",
  "INVALID_ARGUMENT.key_conflict": "The header Idempotency-Key and the body name different keys.",
  "INVALID_ARGUMENT.last_event_id": "The header Last-Event-ID takes the seq of an event, a whole number, not {value}.",
  "INVALID_ARGUMENT.cursor": "The cursor is not one that this server returned.",
  "INVALID_ARGUMENT.attempt": "Run {run} has {last} turns, so there is no turn {attempt}.",
  "INVALID_ARGUMENT.byte_range": "The file has {size} bytes, so it has no bytes {from} to {to}.",
  "INVALID_ARGUMENT.code_or_token": "Send exactly one of code and token.",
  "INVALID_ARGUMENT.token_invalid": "There is no valid token named \"{name}\". List them: parley token ls",
  "INVALID_ARGUMENT.database_url": "The address of a database looks like postgresql://user:password@host:5432/name.",
  "INVALID_ARGUMENT.database_url_percent": "Percent-encode special characters in the address of a database: write % as %25.",
  "INVALID_ARGUMENT.options_form": "runtime_options takes an object.",
  "INVALID_ARGUMENT.status": "There is no status \"{status}\". The statuses are {statuses}.",
  "INVALID_ARGUMENT.pair": "{option} takes name=value, not \"{value}\".",
  "INVALID_ARGUMENT.parse_engine": "Name the engine that printed the output: --engine {engines}.",
  "INVALID_ARGUMENT.stderr_file": "The stderr file \"{path}\" cannot be read: {reason}",
  "INVALID_ARGUMENT.verify_which": "Name a run or give --all, not both.",
  "INVALID_ARGUMENT.log_from": "The {stream} log of turn {attempt} has {size} bytes, none from {from} on.",
  "INVALID_ARGUMENT.log_range": "--to {to} is before --from {from}.",
  "INVALID_ARGUMENT.log_attempt": "Run {run} has no {stream} of turn {attempt}; its last turn is {last}.",
  "INVALID_ARGUMENT.event": "Run {run} has no event {seq}; the last is {last}.",
  "INVALID_ARGUMENT.event_bytes": "Parley itself wrote event {seq} ({type}), so no bytes of the engine belong to it.",
  "INVALID_ARGUMENT.session_unknown": "There is no session \"{session}\". List them: parley token sessions",
  "INVALID_ARGUMENT.import_database": "PARLEY_DATABASE_URL names no database to copy the runs into.",
  "INVALID_ARGUMENT.import_empty": "There are no runs in {path}. Name the data directory to copy with --data.",
  "INVALID_ARGUMENT.compact_database": "PARLEY_DATABASE_URL is set, and PostgreSQL reuses and returns the space of deleted rows by itself (autovacuum). To compact a data directory, unset PARLEY_DATABASE_URL.",
  "INVALID_ARGUMENT.compact_empty": "There is no database in {path}. Name the data directory to compact with --data.",
  "INVALID_ARGUMENT.webhook_unknown": "There is no webhook named \"{name}\" in {file}. It names: {names}.",
  "INVALID_ARGUMENT.rotate_which": "Name the token to rotate, or give --operator for the operator token.",
  "INVALID_ARGUMENT.token_expired": "Token \"{name}\" expired at {time}. Give it more time: parley token rotate \"{name}\" --expires 90d",
  "INVALID_ARGUMENT.operator_token_set": "PARLEY_TOKEN sets the operator token. Change it there and restart the server, or unset it to use the token of the data directory.",
  "INVALID_ARGUMENT.migrate_database": "PARLEY_DATABASE_URL names no database. A data directory is migrated automatically by the next command that writes to it.",
  "INVALID_ARGUMENT.shell": "There is no completion for \"{shell}\". The shells are {shells}.",
  "INVALID_ARGUMENT.port": "Port {port} on {host} is in use. Choose another with --port; 0 takes any free port.",
  "INVALID_ARGUMENT.listen": "The server cannot listen on {host}, port {port}: {reason}",
  "INVALID_ARGUMENT.operator_is_named": "PARLEY_TOKEN is the token \"{name}\" ({role}). The operator needs a token of their own.",
  "INVALID_ARGUMENT.public_url": "public_url: \"{url}\" is not an address without a login; write it like {example}.",
  "INVALID_ARGUMENT.worker": "parley work is started by other commands of parley, not by hand.",
  "INVALID_ARGUMENT.cwd_deleted": "The current folder was deleted, so the agent would have nowhere to work. Change to another folder (cd), or name one: --cwd /absolute/path, or --scratch for an empty one.",
  "INVALID_ARGUMENT.folder_missing": "The folder {path} does not exist.",
  "INVALID_ARGUMENT.schema_unreadable": "The schema \"{path}\" cannot be read: {reason}",
  "INVALID_ARGUMENT.schema_form": "The schema \"{path}\" is not a JSON object.",
  "INVALID_ARGUMENT.no_answer": "The answer is missing. Give it as parley reply {run} TEXT, or with --option N, --value JSON or --finish.",
  "INVALID_ARGUMENT.answers": "Give one of TEXT, --option and --value, not several.",
  "INVALID_ARGUMENT.value": "--value takes JSON, not {value}.",
  "INVALID_ARGUMENT.answer": "{problem}",
  "INVALID_ARGUMENT.finish_or_cancel": "Use --finish, or parley cancel.",
  "INVALID_ARGUMENT.inbox_terminal": "Answering by number needs a terminal. Elsewhere: {command}",
  "INVALID_ARGUMENT.inbox_place": "There is no question {place}: {waiting} waiting.",
  "INVALID_ARGUMENT.path_relative": "The current folder was deleted, so {path} leads nowhere. Change to another folder (cd), or give an absolute path.",
  "INVALID_ARGUMENT.config_command": "There is no command \"parley config {name}\". The commands are list, get, set, unset and check.",
  "INVALID_ARGUMENT.option_value": "Runtime option {name} cannot be {value}: it takes {rule}.",
  "INVALID_ARGUMENT.option_unknown": "There is no runtime option \"{name}\". The options are {names}.",
  "INVALID_ARGUMENT.option_misspelled": "There is no runtime option \"{name}\". Did you mean \"{nearest}\"? The options are {names}.",
  "INVALID_ARGUMENT.body_not_json_reason": "The body is not JSON: {reason}",
  "INVALID_ARGUMENT.usage_command": "There is no command \"{name}\".",
  "INVALID_ARGUMENT.usage_command_near": "There is no command \"{name}\". Did you mean \"{nearest}\"?",
  "INVALID_ARGUMENT.usage_option": "There is no option {name}.",
  "INVALID_ARGUMENT.usage_option_near": "There is no option {name}. Did you mean {nearest}?",
  "INVALID_ARGUMENT.usage_argument": "The argument \"{name}\" is missing.",
  "INVALID_ARGUMENT.usage_option_required": "The option {option} is missing.",
  "INVALID_ARGUMENT.usage_option_value": "The option {option} needs a value.",
  "INVALID_ARGUMENT.usage_conflict": "{option} cannot be used with {other}.",
  "INVALID_ARGUMENT.usage_excess": "The command takes {expected}, not {count}.",
  "INVALID_ARGUMENT.usage_excess_of": "\"{command}\" takes {expected}, not {count}.",
  "INVALID_ARGUMENT.usage_choice": "{option} cannot be \"{value}\": it takes {choices}.",
  "INVALID_ARGUMENT.usage_value": "{option} cannot be \"{value}\". {rule}",
  "UNKNOWN_ENGINE": "There is no engine \"{engine}\". The engines are {engines}.",
  "ENGINE_NOT_INSTALLED.path": "{program} was not found on PATH ({install}). To create the run anyway: --force (over HTTP \"force\": true).",
  "ENGINE_NOT_INSTALLED.configured": "{program} was not found: {place} is not a program. To create the run anyway: --force (over HTTP \"force\": true).",
  "ENGINE_LOGGED_OUT": "{engine} refused your login ({time}), and nothing has changed since. Log in: {login}. To create the run anyway: --force (over HTTP \"force\": true).",
  "ILLEGAL_TRANSITION": "The event {event} is not possible in the state {state}.",
  "GUARD_REFUSED": "The event {event} is not possible in the state {state}: the guard {guard} does not hold.",
  "HANDLE_MISMATCH.engine": "The session belongs to {owner}, not to {engine}.",
  "HANDLE_MISMATCH.invalid_id": "\"{session}\" is not a {engine} session id.",
  "HANDLE_MISMATCH.directory": "The session belongs to the directory {path}, not to {cwd}.",
  "REQUEST_ID_CONFLICT": "Request id {request} was already used with another body (run {run}). Use a new request id.",
  "RUN_NOT_FOUND.unknown": "There is no run {run}.",
  "RUN_NOT_FOUND.short": "There is no run \"{run}\". Give at least {count} characters of its id after run_, as parley ls shows them.",
  "RUN_NOT_FOUND.no_match": "There is no run \"{run}\". parley ls lists the runs.",
  "RUN_NOT_FOUND.ambiguous": "\"{run}\" is ambiguous; it matches {count} runs: {runs}",
  "RUN_NOT_FOUND.none": "There is no run yet. Start one: parley run ENGINE \"…\"",
  "RUN_NOT_FOUND.no_runs": "There is no run \"{run}\": there are no runs in {path}.",
  "INTERACTION_NOT_FOUND.unknown": "Run {run} has no interaction {interaction}.",
  "INTERACTION_NOT_FOUND.none": "Run {run} has no open question.",
  "RUN_NOT_INTERACTIVE": "Run {run} is in auto mode, so it asks no questions. To answer questions, start a run in interactive mode.",
  "RUN_NOT_WAITING.state": "Run {run} is {status}, so it does not wait for an answer.",
  "RUN_NOT_WAITING.timed_out": "Interaction {interaction} timed out and was decided without you; the run is {status}.",
  "RUN_NOT_WAITING.resolved": "Interaction {interaction} is already {state}, and the run is {status}, so there is nothing to answer.",
  "RUN_NOT_WAITING.none": "No run is waiting for you. parley ls lists the runs; parley continue RUN \"…\" follows up on one that has ended.",
  "RUN_NOT_WAITING.ended": "Run {run} {state}, so there is nothing to answer. To follow up: parley continue {run} \"…\"",
  "RUN_NOT_WAITING.active": "Run {run} {state}, so there is nothing to answer. It is not waiting for an answer.",
  "INTERACTION_STALE": "Interaction {interaction} is {state}; the run waits for an answer to another question. Answer its newest question.",
  "REPLY_CONFLICT": "Interaction {interaction} was already answered with this idempotency key and another reply. Use a new key for a new reply.",
  "APPROVAL_INVALID": "The decision of an approval is approve, approve_for_session, decline or cancel, for example: {example}",
  "RUN_NOT_ENDED.delete_state": "Run {run} is {status}. Cancel it first: parley cancel {run}",
  "RUN_NOT_ENDED.delete": "Run {run} has not ended. Cancel it first: parley cancel {run}",
  "RUN_NOT_ENDED.continue": "Run {run} is {status}: only an ended run can be continued or retried. Answer it if it waits (parley reply {run}), wait until it has ended, or cancel it.",
  "RUN_NOT_ENDED.import": "Runs in {path} have not ended: {runs}. End them first, without PARLEY_DATABASE_URL: parley ls --status running, parley ls --status queued",
  "RUN_RECOVERING": "Run {run} was interrupted and is being recovered. Try again when it has ended, or cancel it: parley cancel {run}",
  "NO_SESSION.fork": "Run {run} has no stored session that could be copied. Create a new run instead.",
  "NO_SESSION.continue": "Run {run} has no stored session, so it cannot be continued. Repeat it: parley retry {run}",
  "FORK_UNSUPPORTED": "{engine} cannot start from a copy of a conversation. Continue an ended run instead: parley continue {run} \"…\"",
  "QUEUE_FULL.runs": "{queued} runs are already queued, which is the limit. Try again when some of them have started.",
  "QUEUE_FULL.schemas": "{count} schemas of this caller are already waiting to be checked. Try again in half a minute.",
  "QUEUE_FULL.slow_schemas": "{count} slow schemas are already waiting to be checked. Try again in half a minute.",
  "QUEUE_FULL.slow_schemas_caller": "{count} slow schemas of this caller are already waiting to be checked. Try again in half a minute.",
  "SESSION_IN_USE.folder": "Run {worker} works in the folder of run {run}. Wait until it has ended, or cancel it.",
  "SESSION_IN_USE.home": "{sharer} continues the session of run {run} and uses its home. Delete that run first.",
  "SESSION_IN_USE.session": "Run {worker} is using the session of run {run}. Wait until it has ended, or cancel it.",
  "CURSOR_BEYOND_END": "Run {run} has {head} events so far, none after {cursor}.",
  "RUN_ENDED.cancel": "Run {run} has already {status}, so there is nothing to cancel.",
  "RUN_ENDED.before_cancel": "Run {run} has {status} before it could be canceled.",
  "DATA_DIR_IN_USE.writer": "The data directory {path} is in use by {writer}.",
  "DATA_DIR_IN_USE.server": "A server is already running for {path}: {url} (process {pid}). Open it: parley open",
  "DATA_DIR_IN_USE.silent": "{problem} Its process is still running.",
  "DATA_DIR_IN_USE.cancel": "The worker of run {run} received the cancel request, but the run is still {status}.",
  "DATA_DIR_IN_USE.compact": "parley compact needs the data directory {path} for itself, and it is in use by {writer}.",
  "DATA_DIR_UNUSABLE.token_file": "{file} contains no token. Delete it; the next parley serve creates a new token.",
  "DATA_DIR_UNUSABLE.tokens_invalid": "{file}: {problem} {ways_out}",
  "DATA_DIR_UNUSABLE.tokens_unreadable": "{file} cannot be read: {reason}",
  "DATA_DIR_UNUSABLE.tokens_not_json": "{file} is not JSON. {ways_out} ({reason})",
  "DATA_DIR_UNUSABLE.site": "{file} is damaged. Write the site of its runs into it again (SELECT DISTINCT site, place FROM parley.runs), or delete it if there are none.",
  "DATA_DIR_UNUSABLE.foreign": "parley.db is the database of another program. It was not changed.",
  "DATA_DIR_UNUSABLE.damaged": "The database parley.db is damaged and was not changed: {finding}. {way_out}",
  "DATA_DIR_UNUSABLE.read_only": "{path} is on a read-only file system, and {bytes} bytes of it are still in parley.db-wal, which cannot be read there. Copy the data directory to a writable place and name the copy with --data.",
  "DATA_DIR_UNUSABLE.lock_damaged": "{file} is damaged. It holds no data: make sure that no Parley runs on {path}, then delete it. (SQLite: {reason})",
  "DATA_DIR_UNUSABLE.old_version": "The database in {path} has an older version ({version}). Any command that writes migrates it.",
  "DATA_DIR_UNUSABLE.other": "The data directory {path} cannot be used: {reason}",
  "DATA_DIR_UNUSABLE.replaced": "{path} was deleted or replaced while Parley was using it. Nothing more is accepted, because it would be lost. Put the original file back, or restart Parley to use what is there now.",
  "DATA_DIR_UNUSABLE.audit": "{act}, but this could not be recorded in the administrative journal: {reason}. Check it: parley audit --verify",
  "DATA_DIR_UNUSABLE.not_created": "The data directory {path} cannot be created: {reason}",
  "DATA_DIR_UNUSABLE.operator_token": "The operator token cannot be read from or written to {path} ({code}). To do without a directory of your own, set PARLEY_TOKEN to a token that the server knows.",
  "DATA_DIR_UNUSABLE.home": "HOME is {home}, which is not an absolute path, so there is no default data directory. Set HOME, or name a directory with --data or PARLEY_DATA.",
  "DATA_DIR_UNUSABLE.damaged_data": "Stored data is damaged (parley verify --all checks every run): {reason}",
  "DATA_DIR_UNUSABLE.database": "{problem}",
  "WORKER_NOT_STARTED.interrupted": "Interrupted before the id of the run was known. Find the run with parley ls.",
  "WORKER_NOT_STARTED.failed": "The worker process cannot be started: {reason}",
  "WORKER_NOT_STARTED.ended": "The worker process ended before it began. See parley.log in the data directory.",
  "WORKER_NOT_STARTED.not_begun": "The worker process could not begin: {reason}. See parley.log in the data directory.",
  "DATABASE_TOO_NEW.postgres": "The database has version {version}, and this Parley knows version {known}. Use the Parley that migrated it, or a later one.",
  "DATABASE_TOO_NEW.sqlite": "The database has version {version}, and this Parley knows version {known}. Use the Parley that wrote it, or a later one.",
  "DATABASE_NOT_MIGRATED.no_id": "The database has lost its id. Make another: INSERT INTO parley.meta (key, value) VALUES ('database_id', gen_random_uuid()::text)",
  "DATABASE_NOT_MIGRATED.empty": "The database {database} was not prepared for Parley yet. Run \"parley migrate\".",
  "DATABASE_NOT_MIGRATED.old": "The database {database} has version {version}, and this Parley needs version {needed}. Run \"parley migrate\".",
  "HOSTS_DIFFER.in_use": "The database cannot be migrated while hosts of the earlier version use it: {hosts}. Stop them and run \"parley migrate\" again; a host that was killed is forgotten when its lease expires (cluster.lease_sec).",
  "HOSTS_DIFFER.mode": "Host {host} has cluster.files \"{other}\", this host has \"{own}\". Stop all hosts and set the same value in the config.json of each.",
  "HOSTS_DIFFER.path": "Host {host} has the shared files in {other}, this host has them in {own}. Mount them under the same path on all hosts.",
  "HOSTS_DIFFER.disk": "Host {host} already serves this disk from {path}: two data directories have the same file \"site\". Delete that file in the data directory that is a copy.",
  "IMPORT_INCOMPLETE": "{count} not copied: {problem}",
  "UNAUTHORIZED.no_token": "A token is needed. In a browser: run parley link and open the printed link. In a program: send Authorization: Bearer TOKEN.",
  "UNAUTHORIZED.bad_token": "This token is unknown, expired or revoked. An operator can make a new one: parley token rotate NAME or parley token add NAME.",
  "UNAUTHORIZED.bad_session": "This session has ended. Sign in again: run parley link and open the printed link.",
  "UNAUTHORIZED.bad_code": "This code is unknown, was used already, or has expired. Make another: parley link",
  "UNAUTHORIZED.own_token": "The server of {path} has its own token. Set PARLEY_TOKEN to it.",
  "UNAUTHORIZED.other_token": "The server at {url} does not know the token. Set PARLEY_TOKEN to the token that it was started with.",
  "UNAUTHORIZED.wrong_variable": "The server at {url} does not know the token in PARLEY_TOKEN. Set it to the token that the server was started with, or unset it if the server was started without one.",
  "UNAUTHORIZED.wrong_data_dir": "The server at {url} does not know the token of this data directory. Set PARLEY_TOKEN to the token that it was started with.",
  "TOO_MANY_ATTEMPTS": "Too many wrong tokens or codes came from {address}. Wait {seconds} s and try again with a valid one.",
  "FORBIDDEN": "This needs the role {needed}; the token \"{token}\" has the role {role}.",
  "HOST_NOT_ALLOWED": "This server is not reached as {host}. Add the name to allowed_hosts in config.json, or set public_url.",
  "ORIGIN_NOT_ALLOWED.missing": "A request that changes something needs an Origin header, or a token of its own.",
  "ORIGIN_NOT_ALLOWED.other": "A page of another origin may not use this server, whatever it shows or loads.",
  "ORIGIN_NOT_ALLOWED.sign_in_missing": "Signing in is for pages of this server: the request needs their Origin header. A program sends its token with each request instead.",
  "ORIGIN_NOT_ALLOWED.sign_in_other": "A page of another origin may not sign a browser in.",
  "ORIGIN_NOT_ALLOWED.page": "A page of {origin} may not call this server.",
  "PATH_NOT_ALLOWED.in_data_dir": "{path} is in Parley's data directory ({data_dir}), where no run may work. Choose another folder, or start the run in a new empty folder (--scratch, or no cwd).",
  "PATH_NOT_ALLOWED.contains_data_dir": "{path} contains Parley's data directory ({data_dir}): an agent could read the tokens or change the journal there. Choose a subfolder or a new empty folder (--scratch; over HTTP: no cwd), or allow it with the permission \"full\".",
  "PATH_NOT_ALLOWED.outside_roots": "{path} is not within the folders where runs may work: {allowed}. Allow more folders with workspace_roots in config.json.",
  "NOT_FOUND.log_replaced": "The {stream} log of turn {attempt} of run {run} was replaced by something that is not a regular file. Its events are still stored.",
  "NOT_FOUND.endpoint": "No such endpoint: {method} {path}.",
  "NOT_FOUND.file": "There is no file {path} in the folder of this run.",
  "NOT_FOUND.not_a_file": "The path is not a file.",
  "NOT_FOUND.session": "There is no session {session}. List them: parley token sessions",
  "NOT_FOUND.server": "No server is running for {path}. Start one: parley serve",
  "REQUEST_TIMEOUT": "The request did not arrive in time.",
  "BODY_TOO_LARGE": "The body is larger than this server accepts.",
  "UNSUPPORTED_MEDIA_TYPE.compressed": "The body is compressed ({encoding}). Send it uncompressed.",
  "UNSUPPORTED_MEDIA_TYPE.type": "The type of the body is not application/json, the only one that the server reads.",
  "HEADERS_TOO_LARGE.count": "The request has more than {limit} headers.",
  "HEADERS_TOO_LARGE.bytes": "The headers are larger than this server accepts.",
  "TOO_MANY_STREAMS": "{open} streams are open, which is the limit (max_streams). Close some, or try again later.",
  "TOO_MANY_REQUESTS.large_bodies": "{count} requests of this token with more than {bytes} bytes wait to be read. Send them one after the other.",
  "TOO_MANY_REQUESTS.unread": "Too many bytes of responses have not been read yet, {bytes} of them by the token \"{token}\". Read the open responses, or close their connections, and try again.",
  "TOO_MANY_REQUESTS.open": "The token \"{token}\" has {open} {what} open, and {limit} is the limit for one token. Close some, or try again later.",
  "TOO_MANY_REQUESTS.waiting": "{count} requests of this token wait for their turn, which is the limit. Try again later.",
  "TOO_MANY_REQUESTS.checks_token": "{count} runs are being checked for this token or wait for it, and {limit} is the limit for one token. Try again when one of them is done.",
  "TOO_MANY_REQUESTS.checks": "{count} runs are being checked or wait for it, and {limit} is the limit. Try again later, or run parley verify on the server itself.",
  "TOO_MANY_REQUESTS.sign_ins": "This token has signed in {limit} times within a minute, which is the limit. Try again in {seconds} s.",
  "METHOD_NOT_ALLOWED": "{path} takes {methods}, not {method}.",
  "VERIFY_FAILED": "Run {run} was not checked: {reason}. Check it on the server itself: parley verify {run}",
  "SHUTTING_DOWN.change": "The server is shutting down. Try again when it has restarted.",
  "SHUTTING_DOWN.cancel_stored": "The server is shutting down; the cancel request is stored.",
  "SHUTTING_DOWN.check_stopped": "The check was stopped.",
  "STORE_UNAVAILABLE.lease": "This host has lost its lease and has no new one yet: it could not reach the database in time.",
  "STORE_UNAVAILABLE.lost_server": "{problem} It responded a moment ago: check the result with parley ls, and try again.",
  "STORE_UNAVAILABLE.database": "The database cannot be used: {reason}",
  "STORE_UNAVAILABLE.unchanged": "Nothing was changed: {reason}",
  "STORE_UNAVAILABLE.unreachable": "The database {database} cannot be reached: {reason}",
  "STORE_UNAVAILABLE.unreachable_uncertain": "The database {database} cannot be reached, and it is not known whether the change was stored: {reason}",
  "STORE_UNAVAILABLE.busy": "The database {database} cannot be used now: {reason}",
  "STORE_UNAVAILABLE.busy_uncertain": "The database {database} cannot be used now, and it is not known whether the change was stored: {reason}",
  "STORE_UNAVAILABLE.rotation": "{problem}. The old token may still be valid: run parley token rotate --operator again.",
  "STORE_UNAVAILABLE.compact_space": "Compacting {path} may need {needed} of free disk space, and {free} is free. Nothing was packed. Free some space and try again.",
  "STORE_UNAVAILABLE.compact_full": "The disk became full while {path} was compacted ({reason}). Nothing is lost. Free some space and try again.",
  "FILES_GONE": "The {stream} log of turn {attempt} of run {run} was deleted outside of Parley. Its events are still stored: read them with `parley show {run}`.",
  "FILES_UNREACHABLE.host": "The files of run {run} are on another host, which cannot be reached now.",
  "FILES_UNREACHABLE.elsewhere": "The files of run {run} are not in {path}. They are on another host; read them through its server."
} as const;

// What the caller can do, by code or message.
export const REQUEST_HINTS: Readonly<Record<string, string>> = {
  "UNKNOWN_ENGINE": "parley doctor lists the installed engines.",
  "DATA_DIR_IN_USE": "ls, show and watch work meanwhile. Try again later, or choose another directory with --data.",
  "DATA_DIR_IN_USE.compact": "Stop that process, or wait until its run waits or has ended, and try again. A server returns free space by itself while it runs.",
  "DATA_DIR_IN_USE.server": "Every command works through that server; parley link signs a browser in. To replace it, stop its process first.",
  "DATA_DIR_IN_USE.writer": "ls, show and watch work meanwhile. Try again when that run waits or has ended, or run parley serve: then any number of commands work at once.",
  "DATA_DIR_UNUSABLE": "parley doctor explains more. Choose another directory with --data or PARLEY_DATA.",
  "DATA_DIR_UNUSABLE.audit": "",
  "DATABASE_TOO_NEW": "Nothing was changed. Use the version of Parley that wrote it, or another directory with --data.",
  "DATABASE_TOO_NEW.postgres": "Nothing was changed."
};

// The messages of failed runs, named in the same way.
export const RUN_MESSAGES = {
  "SESSION_RESUME_FAILED.cause": "The session cannot be continued. {reason}",
  "SESSION_RESUME_FAILED.not_stored": "The run was answered, but its session is no longer stored, so the answer cannot reach the agent.",
  "SESSION_RESUME_FAILED.home": "The session cannot be continued. Its home {path} does not exist or cannot be used.",
  "SESSION_RESUME_FAILED.fork_source": "The session of run {run} no longer exists, so there is nothing to copy.",
  "SESSION_RESUME_FAILED.no_session": "The agent needs a person, but its session was not found, so an answer could not reach it.",
  "SESSION_RESUME_FAILED.not_confirmed": "The engine never confirmed that it continues session {session}.",
  "SESSION_RESUME_FAILED.not_confirmed_reason": "The engine never confirmed that it continues session {session}: {reason}",
  "SESSION_RESUME_FAILED.other_session": "The engine had to continue session {session} but continued {other}.",
  "SESSION_RESUME_FAILED.files_offline": "The files of the run are on a host that has been offline for too long. Only that host can continue the conversation.",
  "SESSION_RESUME_FAILED.after_restart": "After a restart, the question or the session of the run was missing, so the run cannot continue.",
  "INTERACTIVE_MAX_ATTEMPT_EXCEEDED": "The agent needs a person again in turn {attempt}, and max_attempt={limit} allows no further turn.",
  "ORCHESTRATOR_RESTART_INTERRUPTED.shutdown": "Parley was stopped while this turn ran. Repeat it with parley retry; the setting recovery.running=\"retry\" repeats interrupted runs once by itself.",
  "ORCHESTRATOR_RESTART_INTERRUPTED.running": "Parley stopped while this run was running. Repeat it with parley retry; the setting recovery.running=\"retry\" repeats interrupted runs once by itself.",
  "ORCHESTRATOR_RESTART_INTERRUPTED.queued": "Parley stopped while this run was queued. Start it with parley retry; the setting recovery.queued=\"requeue\" keeps queued runs.",
  "ORCHESTRATOR_RESTART_INTERRUPTED.logs_elsewhere": "The host that ran this run stopped or lost its lease; the last output of the engine is in the logs on that host. Repeat it with parley retry; the setting recovery.running=\"retry\" repeats interrupted runs once by itself.",
  "ORCHESTRATOR_RESTART_INTERRUPTED.logs_unreadable": "Parley stopped while this run was running, and the last output of its engine could not be read from the logs. Repeat it with parley retry.",
  "ORCHESTRATOR_RESTART_INTERRUPTED.offline": "The run did not start: every host with the data directory of the run has been offline for too long.",
  "ORCHESTRATOR_RESTART_INTERRUPTED.crashed": "Parley crashed {crashes} times while it was about to start this turn or ran it, so the run is not started again by itself. The reason is in parley.log; parley retry starts the run again.",
  "WORKING_FOLDER_UNUSABLE.missing": "The agent cannot work in {path}: the folder does not exist.",
  "WORKING_FOLDER_UNUSABLE.not_directory": "The agent cannot work in {path}: it is not a directory.",
  "WORKING_FOLDER_UNUSABLE.moved": "The agent cannot work in {path}: it now resolves to {real}, which is another folder.",
  "WORKING_FOLDER_UNUSABLE.other": "The agent cannot work in {path}: {reason}.",
  "WORKING_FOLDER_UNUSABLE.programs": "{path} has {programs} that {engine} executes whatever the permission is. Move them away, or run with the permission \"full\".",
  "ENGINE_SETTINGS_INVALID.form": "{file} cannot be read as {form}. Fix it, or move it away.",
  "ENGINE_SETTINGS_INVALID.unreadable": "The settings of the engine cannot be used: {reason}.",
  "ENGINE_NOT_FOUND.not_installed": "{program} not found: {install}",
  "ENGINE_NOT_FOUND.configured": "{program} not found: {place} is not a program.",
  "ENGINE_NOT_FOUND.not_started": "{program} was not found, or the interpreter that its first line names.",
  "ENGINE_NOT_FOUND.not_executable": "{program} cannot be executed ({reason}).",
  "ENGINE_NOT_FOUND.other": "The engine cannot be started: {reason}.",
  "ENGINE_AUTH_REQUIRED.reported": "{reason}",
  "ENGINE_AUTH_REQUIRED.exited": "The engine's process ended with code {exit_code}: {reason}",
  "ENGINE_TURN_FAILED.reported": "{reason}",
  "ENGINE_TURN_FAILED.runaway": "The engine repeated itself without making progress and was stopped.",
  "ENGINE_RATE_LIMITED": "{reason}",
  "ENGINE_SERVICE_FAILED": "{reason}",
  "ENGINE_REQUEST_REJECTED": "{reason}",
  "ENGINE_LIMIT_REACHED": "{reason}",
  "ENGINE_EXITED.code": "The engine's process ended with code {exit_code}.",
  "ENGINE_EXITED.code_reason": "The engine's process ended with code {exit_code}: {reason}",
  "ENGINE_EXITED.signal": "The engine's process was ended by signal {signal}.",
  "TURN_TIMEOUT.limit": "Stopped: the turn took longer than {time} (turn_timeout_sec). Allow more: -o turn_timeout_sec={more}, or null for no limit.",
  "TURN_TIMEOUT.unknown_limit": "Stopped: the turn took longer than its limit (turn_timeout_sec).",
  "ENGINE_IDLE_TIMEOUT.limit": "Stopped after {time} without output (idle_timeout_sec). Allow more: -o idle_timeout_sec={more}.",
  "ENGINE_IDLE_TIMEOUT.unknown_limit": "Stopped: the engine printed nothing for longer than its limit (idle_timeout_sec).",
  "TOOL_CALL_TIMEOUT.limit": "Stopped: a tool call ran for {time} without output (tool_timeout_sec). Allow more: -o tool_timeout_sec={more}.",
  "TOOL_CALL_TIMEOUT.unknown_limit": "Stopped: a tool call ran for longer than its limit without output (tool_timeout_sec).",
  "OUTPUT_INVALID.schema": "The result does not fit the output schema: {problem}",
  "OUTPUT_INVALID.not_json": "The result does not fit the output schema: the last message is not JSON.",
  "COMPLETION_UNKNOWN": "The process exited with code 0, but nothing in its output shows success ({reason_code}).",
  "AUTO_MODE_CANNOT_ASK": "The agent asked a question, but the run is in auto mode.",
  "CANCELED_BY_USER": "The run was canceled.",
  "DISK_FULL": "The disk became full while this turn ran ({reason}). Free some space, then: parley retry {run}",
  "INTERNAL.turn": "The turn could not be run: {reason}",
  "INTERNAL.preparation": "The turn could not be prepared: {reason}",
  "INTERNAL.program": "{program} could not be started: {reason}",
  "INTERNAL.request": "This is a defect in Parley. The details are in the log of the server under {error_id}.",
  "INTERNAL.response_not_json": "The response to {method} {path} is not JSON.",
  "INTERNAL.event_order": "Event {seq} came after event {last}.",
  "INTERNAL.response_status": "The server answered {status}.",
  "INTERACTION_WAIT_TIMEOUT": "Nobody answered before the session timeout (session_timeout_sec), so the process that waited was ended.",
  "INTERACTION_PROCESS_LOST": "The process that waited for the answer has exited, and its session ended with it."
} as const;

// What the caller can do about a failed run, by code or message.
export const RUN_HINTS: Readonly<Record<string, string>> = {
  "INTERACTIVE_MAX_ATTEMPT_EXCEEDED": "Allow more turns with -o max_attempt=N.",
  "ENGINE_NOT_FOUND": "parley doctor lists the engines and where Parley looked for them.",
  "ENGINE_AUTH_REQUIRED": "Log in with the engine itself (parley doctor shows how), then repeat the run with parley retry.",
  "ENGINE_RATE_LIMITED": "Wait until the limit resets, then repeat the run with parley retry.",
  "AUTO_MODE_CANNOT_ASK": "The run was unattended. Start it again with --interactive (-i) to let the agent ask you."
};

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
  "ENGINE_RATE_LIMITED": {
    "retryable": true,
    "meaning": "The model service refuses more requests for now: a rate limit, or the usage limit of a subscription."
  },
  "ENGINE_SERVICE_FAILED": {
    "retryable": true,
    "meaning": "The model service failed, was overloaded, broke off its response or could not be reached, also after the engine's own retries."
  },
  "ENGINE_REQUEST_REJECTED": {
    "retryable": false,
    "meaning": "The model service rejected the request itself, for instance because it does not have the model."
  },
  "ENGINE_LIMIT_REACHED": {
    "retryable": true,
    "meaning": "A limit in the engine's own settings was reached: its turns or its budget."
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
  "RUN_RECOVERING": 409,
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
