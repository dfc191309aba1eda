// The port of an engine: everything that Parley needs to know about it. One folder implements it with four files.
import type { EngineSessionHandle } from '../run/session-handle.js';
import type { ParserReader, ReaderMemory } from './turn-parser.js';
import type { Emitter } from './emitter.js';
import type { GateRules } from './gate.js';
import type { ResidentRules } from './resident.js';

export type Permission = 'read-only' | 'workspace-write' | 'full';

export interface TurnSpec {
  // How the engine is started, already located: its program, or an interpreter with its script.
  readonly program: readonly string[];
  readonly cwd: string;
  readonly prompt: string;
  readonly permission: Permission;
  readonly model?: string;
  // Whether a path exists, relative to the folder: for engines that read words of a prompt as file names.
  readonly hasFile?: (path: string) => boolean;
  // A file with a JSON Schema for the result, for engines that accept one.
  readonly outputSchemaFile?: string;
  // An id for a new session, used only by engines that let the caller choose one.
  readonly newSessionId: string;
  // How to start the question tool, if the agent may ask; engines that do not support it ignore it.
  readonly ask?: readonly string[];
  // Instructions of the workspace that the engine does not read itself, and the file of the turn for them.
  readonly instructions?: TextFile;
  // Where the engine asks before each tool call, and the secret that it sends.
  readonly gate?: { readonly url: string; readonly token: string };
  // The turn begins with the deferred tool call of the turn before, and has no prompt.
  readonly resumesCall?: boolean;
}

interface TextFile {
  readonly path: string;
  readonly text: string;
}

export interface EngineCommand {
  readonly argv: readonly string[];
  readonly cwd: string;
  // Written to stdin, which is then closed; null: stdin is closed at once.
  readonly stdin: string | null;
  readonly env: Readonly<Record<string, string>>;
  // The id that a new session should get; the output must name the same id.
  readonly chosenSession?: string;
  // A file that the command names. It is written before the engine starts.
  readonly file?: TextFile;
}

export interface CommandBuilder {
  buildStart(spec: TurnSpec): EngineCommand;
  buildResume(spec: TurnSpec, handle: EngineSessionHandle): EngineCommand;
  // Starts with a copy of a session that is in the home; absent if the engine cannot make one.
  buildFork?(spec: TurnSpec, sessionId: string): EngineCommand;
}

export interface HandleRules {
  // Where the id appears in the output, for people.
  readonly source: string;
  // Only an id of this form is safe to pass back to the engine.
  readonly accepts: (sessionId: string) => boolean;
}

export interface ProbeRules {
  readonly binary: string;
  // Another engine of the same program: a path that is configured for that engine applies to this one.
  readonly programOf?: string;
  // The native program behind a wrapper: a wrapper that is killed leaves its child running.
  readonly natives?: (wrapper: string, platform: string) => readonly string[];
  // For an engine that comes with Parley: its script, in the folder of the built main.js. Node runs it, and PATH is not
  // searched.
  readonly bundled?: string;
  // The packages that install the engine: a version is valid only in one of these.
  readonly packages: RegExp;
  readonly versionArgs: readonly string[];
  readonly parseVersion: (output: string) => string | null;
  // The part of its own help that shows that it can continue a conversation. Absent for an engine that comes with
  // Parley.
  readonly resume?: { readonly args: readonly string[]; readonly shows: RegExp };
  // The version that the parser was tested with.
  readonly provedVersion: string;
  readonly install: string;
}

// The person whose login the engine uses.
export interface User {
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

// A file or a folder of the user, and its place in the home.
export interface Brought {
  readonly from: string;
  readonly to: string;
  // Of a folder, only its own files with such names.
  readonly only?: RegExp;
}

export interface LoginFile extends Brought {
  // For a file that may contain other things: it is a login if its text matches this.
  readonly having?: RegExp;
}

// What the file of a turn depends on.
export interface TurnFileNeeds {
  readonly ask: readonly string[] | null;
  readonly permission: Permission;
  readonly cwd: string;
  // The root of the repository that contains the folder, or the folder itself.
  readonly project: string;
}

// The files of the user's git folder that a home which hides it needs, without passwords that may be stored there.
export const GIT_FILES = /^(?:config|ignore|attributes)$/;

// Files of a workspace that an engine executes regardless of its settings. Below `full`, a workspace with such files is
// refused.
export interface Unstoppable {
  readonly what: string;
  // Any file in these folders, and files with these names if their text matches `mention`.
  readonly folders: readonly string[];
  readonly files: readonly string[];
  readonly mention: RegExp;
}

// How an engine lives in a private home.
export interface HomeRules {
  // The variables that make the engine keep everything in this home.
  readonly environment: (home: string) => Readonly<Record<string, string>>;
  // Names of the engine's own settings and keys that are passed on from the user.
  readonly passes: readonly RegExp[];
  // The user's login files, and where in the home the engine looks for them.
  readonly logins: (user: User) => readonly LoginFile[];
  // The variable that names the folder of the login files, and that folder: for an engine that replaces the file when
  // it renews a login, which a link in the home would not survive.
  readonly loginFolder?: { readonly variable: string; readonly of: (user: User) => string };
  // When the login in this text expires (ms), for engines that renew it with a token that can be used once; null: it
  // never expires.
  readonly loginExpiry?: (text: string) => number | null;
  // Other files that the engine renews, such as logins to MCP servers; linked into the home as well.
  readonly linked?: (user: User) => readonly Brought[];
  // Environment names that hold a login, and instructions for logging in.
  readonly keys: readonly RegExp[];
  readonly howToLogIn: string;
  // Settings that name a provider which needs none of these logins.
  readonly ownProvider?: {
    readonly files: (user: User) => readonly string[];
    readonly isNamedIn: (text: string, user: User) => boolean;
  };
  // A key that people have under another name: passed under the engine's own name if there is no other login.
  readonly keyInstead?: { readonly of: string; readonly as: string };
  // The user's settings that a new home starts with. They are copied, so changes by the engine stay in the home.
  readonly settings: (user: User) => readonly Brought[];
  // A file of the home that is written before each turn, from its current content, at first from the user's own file.
  // Null: the text is not valid for this file.
  readonly turnFile?: {
    readonly path: string;
    readonly from: (user: User) => string;
    readonly write: (current: string | null, needs: TurnFileNeeds) => string | null;
  };
  readonly unstoppable?: Unstoppable;
  // The file in a workspace with instructions for the agent, if the engine does not read it below `full`.
  readonly instructions?: string;
  // Repairs the text of a stored session before it is continued.
  readonly mend?: (session: string) => string;
  // The folder of the sessions in the home, and whether a file there belongs to a session: by its name, or because it
  // contains the id.
  readonly sessions: {
    readonly folder: string;
    readonly holds: (path: string, sessionId: string) => 'by name' | 'if mentioned' | false;
    // Reads the first line of such a file: the session whose files contain the earlier part of the conversation; null:
    // this file has all of it.
    readonly basis?: (firstLine: string) => string | null;
  };
}

export interface Engine {
  readonly name: string;
  readonly profile: string;
  readonly command: CommandBuilder;
  readonly handle: HandleRules;
  readonly probe: ProbeRules;
  readonly home: HomeRules;
  readonly createReader: (out: Emitter, memory: ReaderMemory) => ParserReader;
  // The rules of an engine that asks Parley before each tool call.
  readonly gate?: GateRules;
  // The rules of a resident engine: its process outlives the turn.
  readonly resident?: ResidentRules;
  // Whether it supports the question tool.
  readonly asksByTool: boolean;
}

// On Linux one argv string may have at most 128 KiB, and no NUL; other prompts must be passed on stdin.
const MAX_ARGUMENT_BYTES = 100_000;

export function fitsArgument(prompt: string): boolean {
  return !prompt.includes('\0') && Buffer.byteLength(prompt) <= MAX_ARGUMENT_BYTES;
}

// One word with its option, so that no model name can be read as an option.
export function modelArgument({ model }: Pick<TurnSpec, 'model'>): string[] {
  return model === undefined ? [] : [`--model=${model}`];
}
