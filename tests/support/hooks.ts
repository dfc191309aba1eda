// Cleanup that helper modules register once, at import. Test files share a process (`isolate: false` in
// vitest.config.ts), where Vitest evaluates a helper only for the first file that imports it: a hook at the top level
// of a helper would not run for later files. `run-hooks.ts` is evaluated for every file and runs the cleanup.
type Cleanup = () => void | Promise<void>;

const afterTests: Cleanup[] = [];
const afterFiles: Cleanup[] = [];

export function afterEachTest(cleanup: Cleanup): void {
  afterTests.push(cleanup);
}

export function afterEachFile(cleanup: Cleanup): void {
  afterFiles.push(cleanup);
}

// Runs the cleanup of the module registered last first: it may use the modules that it imports.
export async function cleanUpTest(): Promise<void> {
  for (const cleanup of afterTests.toReversed()) await cleanup();
}

export async function cleanUpFile(): Promise<void> {
  for (const cleanup of afterFiles.toReversed()) await cleanup();
}
