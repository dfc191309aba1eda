// The types of install-engines.mjs, for the tests that use it.
export type RealEngine = 'claude' | 'codex' | 'gemini' | 'opencode';
export declare const ENGINE_PACKAGES: Readonly<Record<RealEngine, { readonly name: string; readonly version: string }>>;
// The beginning of each command line, whether or not it is installed.
export declare const ENGINE_PROGRAMS: Readonly<Record<RealEngine, readonly [string, ...string[]]>>;
export declare function installEngines(): void;
