// iFlow keeps everything under HOME/.iflow; a session's file is named after its id.
import { join } from 'node:path';
import type { HomeRules } from '../engine.js';

const LOGINS = ['oauth_creds.json', 'iflow_accounts.json', 'settings.json'];

export const iflowHome: HomeRules = {
  environment: (home) => ({ HOME: home }),
  passes: [/^IFLOW_/i],
  logins: ({ home }) => LOGINS.map((name) => ({ from: join(home, '.iflow', name), to: `.iflow/${name}` })),
  sessions: { folder: '.iflow', holds: (path, id) => path.includes(id) && 'by name' },
};
