// The types of audit-dependencies.mjs, for the tests that use it.
export interface Locked {
  name?: string;
  version: string;
  integrity?: string;
  license?: string;
  resolved?: string;
  dev?: boolean;
  devOptional?: boolean;
  hasInstallScript?: boolean;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}
export interface Lock {
  packages: Record<string, Locked>;
}
export declare const INSTALL_SCRIPTS: Readonly<Record<string, string>>;
export declare function auditDependencies(lock: Lock): {
  readonly problems: readonly string[];
  readonly used: number;
  readonly direct: number;
  readonly tools: number;
};
export declare function readLock(): Lock;
