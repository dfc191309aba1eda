// Where a host keeps the files of runs.
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { OWN_FILE, readTextSync } from '../../../files/read-file.js';
import { createFile } from '../../../files/replace-file.js';
import { RequestError } from '../../../run/request-error.js';

export interface Site {
  // Names the disk; null: all hosts see the same files.
  readonly site: string | null;
  // The data directory, which stands in the paths of runs; null: of a store that plays nothing.
  readonly place: string | null;
}

const SITE = /^site_[0-9a-f-]{36}$/;

export const NOWHERE: Site = { site: null, place: null };

// Of a data directory, by its real path.
export function siteAt(place: string, files: 'host' | 'shared'): Site {
  return { site: files === 'shared' ? null : identifyDirectory(place), place };
}

// Names the disk for the other hosts, whatever becomes of the machine's name; null: it has no name yet. Under another
// name its runs would wait for ever for a disk that is gone.
export function readSite(path: string): string | null {
  const file = join(path, 'site');
  const site = readTextSync(file, OWN_FILE)?.trim();
  if (site === undefined) return null;
  if (!SITE.test(site))
    throw new RequestError(
      'DATA_DIR_UNUSABLE',
      `${file} is damaged: write into it again what the runs of this directory have (SELECT DISTINCT site, place ` +
        'FROM parley.runs), or remove it if there are none',
    );
  return site;
}

// The same id as the site, also where hosts share their files.
export function identifyDirectory(path: string): string {
  const known = readSite(path);
  if (known !== null) return known;
  const made = `site_${randomUUID()}`;
  createFile(join(path, 'site'), `${made}\n`);
  // Another process may have made it first.
  return readSite(path) ?? made;
}
