// The port: what Parley needs to know of an engine. One folder implements it with four files.
import type { EngineSessionHandle } from '../run/session-handle.js';
import type { ParserReader, ReaderMemory } from './turn-parser.js';
import type { Emitter } from './emitter.js';
import type { ResidentRules } from './resident.js';

export type Permission = 'read-only' | 'workspace-write' | 'full';

export interface TurnSpec {
  // What starts the engine, already found: its program, or an interpreter with its script.
  readonly program: readonly string[];
  readonly cwd: string;
  readonly prompt: string;
  readonly permission: Permission;
  readonly model?: string;
  // Whether a path, as seen from the folder, leads to something: for engines that take words of a prompt for files.
  readonly hasFile?: (path: string) => boolean;
  // A file with a JSON Schema for the result, for engines that accept one.
  readonly outputSchemaFile?: string;
  // An id for a new session, used only by engines that let the caller choose one.
  readonly newSessionId: string;
  // What starts the question tool, where the agent may ask; engines that cannot be given one ignore it.
  readonly ask?: readonly string[];
}

export interface EngineCommand {
  readonly argv: readonly string[];
  readonly cwd: string;
  // Written to stdin, which is then closed; null: stdin is closed at once.
  readonly stdin: string | null;
  readonly env: Readonly<Record<string, string>>;
  // The id that a new session was asked to have; the output must name the same.
  readonly chosenSession?: string;
}

export interface CommandBuilder {
  buildStart(spec: TurnSpec): EngineCommand;
  buildResume(spec: TurnSpec, handle: EngineSessionHandle): EngineCommand;
  // Begins with a copy of a session that is in the home; absent where the engine has no way to make one.
  buildFork?(spec: TurnSpec, sessionId: string): EngineCommand;
}

export interface HandleRules {
  // Where the id is in the output, for people.
  readonly source: string;
  // Only an id of this form is safe to hand back to the engine.
  readonly accepts: (sessionId: string) => boolean;
}

export interface ProbeRules {
  readonly binary: string;
  // Another engine of the same program: where that was said to be, it is too.
  readonly programOf?: string;
  // Where the native program is that a wrapper would start: the wrapper leaves it behind when it is killed.
  readonly natives?: (wrapper: string, platform: string) => readonly string[];
  // For an engine that comes with Parley: its script, beside the built main.js. It is run by Node and not looked for on
  // PATH.
  readonly bundled?: string;
  // The packages that it is installed as: of these, and of no other, the version is its own.
  readonly packages: RegExp;
  readonly versionArgs: readonly string[];
  readonly parseVersion: (output: string) => string | null;
  // What of its own help shows that it can continue a conversation. One that comes with Parley need not be asked.
  readonly resume?: { readonly args: readonly string[]; readonly shows: RegExp };
  // The version whose output the parser was proved on.
  readonly provedVersion: string;
  readonly install: string;
}

// The person whose login the engine uses.
export interface User {
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

// A file or a folder of the user, and where it belongs within the home.
export interface Brought {
  readonly from: string;
  readonly to: string;
  // Of a folder, only its own files with such names.
  readonly only?: RegExp;
}

export interface LoginFile extends Brought {
  // For a file that may hold other things: it is a login if its text has this.
  readonly having?: RegExp;
}

// What the file of a turn depends on.
export interface TurnFileNeeds {
  readonly ask: readonly string[] | null;
  readonly permission: Permission;
  readonly cwd: string;
  // The root of the repository that it is in, or itself.
  readonly project: string;
}

// What of the user's git folder belongs into a home that hides it; not the passwords that may lie there.
export const GIT_FILES = /^(?:config|ignore|attributes)$/;

// What an engine executes of a workspace, whatever it is told. Below `full` a workspace that has such things is
// refused.
export interface Unstoppable {
  readonly what: string;
  // Files in these folders; files with these names that mention it.
  readonly folders: readonly string[];
  readonly files: readonly string[];
  readonly mention: RegExp;
}

// How an engine lives in a private home.
export interface HomeRules {
  // What makes the engine keep everything in this home.
  readonly environment: (home: string) => Readonly<Record<string, string>>;
  // Names of the engine's own settings and keys that are passed on from the user.
  readonly passes: readonly RegExp[];
  // The user's login files, and where in the home the engine looks for them.
  readonly logins: (user: User) => readonly LoginFile[];
  // Until when the text of a login file holds (ms), where the engine renews it with a token that counts once; null: for
  // ever.
  readonly loginExpiry?: (text: string) => number | null;
  // Other files that the engine renews, as logins to MCP servers: linked in too.
  readonly linked?: (user: User) => readonly Brought[];
  // Environment names that hold a login, and what a person does to log in.
  readonly keys: readonly RegExp[];
  readonly howToLogIn: string;
  // Settings that name a provider which needs none of these logins.
  readonly ownProvider?: {
    readonly files: (user: User) => readonly string[];
    readonly isNamedIn: (text: string, user: User) => boolean;
  };
  // A key that people have under another name: given to the engine under its own, where there is no other login.
  readonly keyInstead?: { readonly of: string; readonly as: string };
  // The user's settings that a new home begins with. Copied: what the engine writes into them stays in the home.
  readonly settings: (user: User) => readonly Brought[];
  // A file of the home that is written before each turn, from its current content, at first from the user's own file.
  // Null: that text is not what the file must be.
  readonly turnFile?: {
    readonly path: string;
    readonly from: (user: User) => string;
    readonly write: (current: string | null, needs: TurnFileNeeds) => string | null;
  };
  readonly unstoppable?: Unstoppable;
  // Mends the text of a stored session before it is continued.
  readonly mend?: (session: string) => string;
  // Where in the home the sessions are, and which file there belongs to one: by its name, or because it mentions the
  // id.
  readonly sessions: {
    readonly folder: string;
    readonly holds: (path: string, sessionId: string) => 'by name' | 'if mentioned' | false;
    // By the first line of such a file: the session whose files hold what was said before it began; null: it has all of
    // it.
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
  // Its process stays between the turns of a conversation.
  readonly resident?: ResidentRules;
  // It can be given the question tool.
  readonly asksByTool: boolean;
}

// One argv string may have at most 128 KiB on Linux, and none may have a NUL; such a prompt must go by stdin.
const MAX_ARGUMENT_BYTES = 100_000;

export function fitsArgument(prompt: string): boolean {
  return !prompt.includes('\0') && Buffer.byteLength(prompt) <= MAX_ARGUMENT_BYTES;
}

// In one word with its option: whatever the model is called, it is a value.
export function modelArgument({ model }: Pick<TurnSpec, 'model'>): string[] {
  return model === undefined ? [] : [`--model=${model}`];
}
