// Where a host keeps the files of runs.
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { OWN_FILE, readTextSync } from '../../../files/read-file.js';
import { createFile } from '../../../files/replace-file.js';
import { refusal } from '../../../run/request-error.js';

export interface Site {
  // The disk; null: all hosts share the same files.
  readonly site: string | null;
  // The data directory, which is part of the paths of runs; null: a store that runs no turns.
  readonly place: string | null;
}

const SITE = /^site_[0-9a-f-]{36}$/;

export const NOWHERE: Site = { site: null, place: null };

// The place of a data directory, by its real path.
export function siteAt(place: string, files: 'host' | 'shared'): Site {
  return { site: files === 'shared' ? null : identifyDirectory(place), place };
}

// The id of the disk, independent of the name of the machine; null: it has none yet. With a different id its runs would
// wait forever for a missing disk.
export function readSite(path: string): string | null {
  const file = join(path, 'site');
  const site = readTextSync(file, OWN_FILE)?.trim();
  if (site === undefined) return null;
  if (!SITE.test(site)) throw refusal('DATA_DIR_UNUSABLE.site', { file });
  return site;
}

// The same id as the site, also if hosts share their files.
export function identifyDirectory(path: string): string {
  const known = readSite(path);
  if (known !== null) return known;
  const made = `site_${randomUUID()}`;
  createFile(join(path, 'site'), `${made}\n`);
  // Another process may have created it first.
  return readSite(path) ?? made;
}
