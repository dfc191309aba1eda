// A disk that refuses one write of this process, the n-th within a folder, or all from there on, with half of the data
// written or none. Opening a file for writing, creating a folder and renaming a file also count as writes. Replaces the
// functions of node:fs and restores them. SQLite writes through the store, which a test alters itself.
import fs from 'node:fs';
import { open } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

export type How = 'ENOSPC' | 'EIO' | 'half';

export interface FailingDisk {
  // Call before a write outside node:fs: throws if this write should fail.
  check(): void;
  readonly writes: number;
  readonly failed: number;
  // The names of the refused calls.
  readonly refused: readonly string[];
  // The disk has space again.
  heal(): void;
  restore(): void;
}

type Call = (...args: never[]) => unknown;

export async function breakDisk(
  folder: string,
  { at, times, how }: { readonly at: number; readonly times: number; readonly how: How },
): Promise<FailingDisk> {
  const paths = new Map<number, string>();
  const real = {
    openSync: fs.openSync,
    closeSync: fs.closeSync,
    writeSync: fs.writeSync,
    writeFileSync: fs.writeFileSync,
    appendFileSync: fs.appendFileSync,
    fdatasync: fs.fdatasync,
    fdatasyncSync: fs.fdatasyncSync,
    mkdirSync: fs.mkdirSync,
    renameSync: fs.renameSync,
  };
  const realPromises = { open: fs.promises.open, mkdir: fs.promises.mkdir, rename: fs.promises.rename };
  const handle = await open(import.meta.filename, 'r');
  const proto = Object.getPrototypeOf(handle) as Record<'write' | 'writeFile' | 'datasync' | 'close', Call>;
  await handle.close();
  const own = { write: proto.write, writeFile: proto.writeFile, datasync: proto.datasync, close: proto.close };
  const refused: string[] = [];
  const state = { writes: 0, failed: 0, left: times, isOver: false };
  // Null: the write succeeds.
  const refusal = (call = 'write'): Error | null => {
    if (state.isOver) return null;
    state.writes += 1;
    if (state.writes < at || state.left === 0) return null;
    state.left -= 1;
    state.failed += 1;
    refused.push(call);
    const code = how === 'EIO' ? 'EIO' : 'ENOSPC';
    return Object.assign(new Error(`${code}: ${code === 'EIO' ? 'i/o error' : 'no space left on device'}, ${call}`), {
      code,
      syscall: call,
      errno: code === 'EIO' ? -5 : -28,
    });
  };
  const isOurs = (file: unknown): boolean =>
    typeof file === 'number' ? paths.has(file) : String(file).startsWith(folder);

  const guard =
    (call: (...args: never[]) => unknown, half: (args: unknown[]) => void) =>
    (...args: unknown[]): unknown => {
      const error = isOurs(args[0]) ? refusal() : null;
      if (!error) return call(...(args as never[]));
      if (how === 'half') half(args);
      throw error;
    };
  const orRefuse = (path: unknown, call: string): void => {
    const error = isOurs(path) ? refusal(call) : null;
    if (error) throw error;
  };
  const patched = {
    mkdirSync: (...args: unknown[]) => (orRefuse(args[0], 'mkdir'), (real.mkdirSync as Call)(...(args as never[]))),
    renameSync: (...args: unknown[]) => (orRefuse(args[0], 'rename'), (real.renameSync as Call)(...(args as never[]))),
    openSync: (...args: Parameters<typeof real.openSync>) => {
      if (isForWriting(args[1])) orRefuse(args[0], 'open');
      const file = real.openSync(...args);
      if (isOurs(args[0])) paths.set(file, String(args[0]));
      return file;
    },
    closeSync: (file: number) => {
      paths.delete(file);
      return real.closeSync(file);
    },
    writeSync: guard(
      real.writeSync as Call,
      ([file, data, from]) =>
        void real.writeSync(file as number, halfOf((data as Buffer).subarray(from as number | undefined))),
    ),
    writeFileSync: guard(real.writeFileSync as Call, ([file, data, options]) =>
      real.writeFileSync(file as string, halfOf(data), options as fs.WriteFileOptions),
    ),
    appendFileSync: guard(real.appendFileSync as Call, ([file, data, options]) =>
      real.appendFileSync(file as string, halfOf(data), options as fs.WriteFileOptions),
    ),
    fdatasync: (file: number, done: fs.NoParamCallback) => {
      const error = isOurs(file) ? refusal('fdatasync') : null;
      if (error) setImmediate(done, error);
      else real.fdatasync(file, done);
    },
    fdatasyncSync: guard(real.fdatasyncSync as Call, () => {}),
  };
  Object.assign(fs, patched);
  Object.assign(fs.promises, {
    open: async (...args: Parameters<typeof fs.promises.open>) => {
      if (isForWriting(args[1])) orRefuse(args[0], 'open');
      const file = await realPromises.open(...args);
      if (isOurs(args[0])) paths.set(file.fd, String(args[0]));
      return file;
    },
    mkdir: async (...args: unknown[]) => (
      orRefuse(args[0], 'mkdir'),
      (realPromises.mkdir as Call)(...(args as never[]))
    ),
    rename: async (...args: Parameters<typeof fs.promises.rename>) => (
      orRefuse(args[0], 'rename'),
      realPromises.rename(...args)
    ),
  });
  // Handles have no path: this process uses them only for logs and recordings of runs.
  Object.assign(proto, {
    async write(this: unknown, ...args: unknown[]) {
      const error = refusal();
      if (!error) return Reflect.apply(own.write, this, args as never[]);
      if (how === 'half')
        await Reflect.apply(own.write, this, [
          halfOf((args[0] as Buffer).subarray(args[1] as number | undefined)),
        ] as never[]);
      throw error;
    },
    async writeFile(this: unknown, ...args: unknown[]) {
      const error = refusal();
      if (!error) return Reflect.apply(own.writeFile, this, args as never[]);
      if (how === 'half') await Reflect.apply(own.writeFile, this, [halfOf(args[0])] as never[]);
      throw error;
    },
    async close(this: { readonly fd: number }) {
      paths.delete(this.fd);
      return Reflect.apply(own.close, this, []);
    },
    async datasync(this: unknown) {
      const error = refusal();
      if (error) throw error;
      return Reflect.apply(own.datasync, this, []);
    },
  });
  syncBuiltinESMExports();
  return {
    check: () => {
      const error = refusal();
      if (error) throw Object.assign(new Error('database or disk is full'), { code: 'ERR_SQLITE_ERROR' });
    },
    get writes() {
      return state.writes;
    },
    get failed() {
      return state.failed;
    },
    refused,
    heal: () => void (state.isOver = true),
    restore: () => {
      Object.assign(fs, real);
      Object.assign(fs.promises, realPromises);
      Object.assign(proto, own);
      syncBuiltinESMExports();
    },
  };
}

function isForWriting(flags: string | number | undefined): boolean {
  if (typeof flags === 'number')
    return (flags & (fs.constants.O_WRONLY | fs.constants.O_RDWR | fs.constants.O_CREAT)) !== 0;
  return flags !== undefined && flags !== 'r';
}

function halfOf(data: unknown): Buffer {
  return Buffer.from(data as string).subarray(0, Math.floor(Buffer.byteLength(data as string) / 2));
}
