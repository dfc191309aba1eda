// The files of a run's folder as others may see them: without its home, and without what a link leads to. An agent may
// be at work in it, and may mean harm: what has become something else by the time it is opened is not what was asked
// for.
import type { FileHandle } from 'node:fs/promises';
import { sep } from 'node:path';
import { escapeName, listFolder, textOf } from '../../files/list-folder.js';
import { openFile, UnsafeFileError, type FilePath } from '../../files/read-file.js';

// So many entries of a folder are in memory at once; a larger folder comes in pieces, each in the order of its names.
const PIECE = 10_000;

export interface FileOfRun {
  // Bytes, where a name on the way is not UTF-8.
  readonly path: FilePath;
  // Below the folder, with / between its parts. Where a name is not UTF-8, it is escaped (\xNN), and `isText` is false.
  readonly shown: string;
  readonly isText: boolean;
}

interface Walk {
  // A folder that is left out.
  readonly shut: string;
  // Called for each entry; false stops the walk.
  readonly onEntry: () => boolean;
  // Called for a folder that cannot be read.
  readonly onUnreadable: (folder: FileOfRun) => void;
}

// `folder` must be a real path.
export function walkFiles(
  folder: string,
  shut: string,
  rules: Partial<Omit<Walk, 'shut'>> = {},
): AsyncGenerator<FileOfRun, void> {
  return walk(
    { path: folder, shown: '', isText: true },
    { shut, onEntry: () => true, onUnreadable: () => {}, ...rules },
  );
}

async function* walk(folder: FileOfRun, rules: Walk): AsyncGenerator<FileOfRun, void> {
  try {
    for await (const entries of listFolder(folder.path, PIECE)) {
      for (const { name, kind } of entries) {
        if (!rules.onEntry()) return;
        const found = below(folder, name);
        if (found.path === rules.shut) continue;
        // A link is neither.
        if (kind === 'folder') yield* walk(found, rules);
        else if (kind === 'file') yield found;
      }
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    rules.onUnreadable(folder);
  }
}

function below({ path, shown, isText }: FileOfRun, name: Buffer): FileOfRun {
  const text = textOf(name);
  const whole = isText && text !== null;
  const part = text ?? escapeName(name);
  const inside =
    typeof path === 'string' && text !== null
      ? `${path}${sep}${text}`
      : Buffer.concat([Buffer.from(path), Buffer.from(sep), name]);
  return { path: inside, shown: shown === '' ? part : `${shown}/${part}`, isText: whole };
}

// Open, and really the file at that place, not one that a link on the way to it has led to for a moment. Null: it is
// not.
export async function openInPlace(path: FilePath): Promise<FileHandle | null> {
  try {
    return await openFile(path);
  } catch (error) {
    if (error instanceof UnsafeFileError || (error as NodeJS.ErrnoException).code !== undefined) return null;
    throw error;
  }
}
