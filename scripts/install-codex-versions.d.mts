// The types of install-codex-versions.mjs, for the tests that use it.
export declare const CODEX_VERSIONS: readonly string[];
export declare function codexOf(version: string): string;
