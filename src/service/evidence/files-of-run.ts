// The files of a run's folder as callers may see them: without its home and without following links. A hostile agent
// may be working in the folder, so a file that was replaced between listing and opening is not served.
import type { FileHandle } from 'node:fs/promises';
import { sep } from 'node:path';
import { escapeName, listFolder, textOf } from '../../files/list-folder.js';
import { openFile, UnsafeFileError, type FilePath } from '../../files/read-file.js';

// The maximum number of folder entries in memory; a larger folder is read in parts, each sorted by name.
const PIECE = 10_000;

export interface FileOfRun {
  // Bytes if a name in the path is not UTF-8.
  readonly path: FilePath;
  // The path below the folder, separated by /. A name that is not UTF-8 is escaped (\xNN), and `isText` is false.
  readonly shown: string;
  readonly isText: boolean;
}

interface Walk {
  // A folder to leave out.
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
        const entry = below(folder, name);
        if (entry.path === rules.shut) continue;
        // A link is neither a file nor a folder.
        if (kind === 'folder') yield* walk(entry, rules);
        else if (kind === 'file') yield entry;
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

// Opens the file only if it is really at this path, and not behind a link that existed for a moment. Null: it is not.
export async function openInPlace(path: FilePath): Promise<FileHandle | null> {
  try {
    return await openFile(path);
  } catch (error) {
    if (error instanceof UnsafeFileError || (error as NodeJS.ErrnoException).code !== undefined) return null;
    throw error;
  }
}
