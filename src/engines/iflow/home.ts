// iFlow keeps everything under HOME/.iflow; a session's file is named after its id.
import { formText } from '../../messages/forms.js';
import { join } from 'node:path';
import { GIT_FILES, type HomeRules } from '../engine.js';

const LOGINS = ['oauth_creds.json', 'iflow_accounts.json'];

export const iflowHome: HomeRules = {
  environment: (home) => ({ HOME: home }),
  passes: [/^IFLOW_/i],
  logins: ({ home }) => LOGINS.map((name) => ({ from: join(home, '.iflow', name), to: `.iflow/${name}` })),
  keys: [/^IFLOW_API_KEY$/i],
  howToLogIn: formText('iflow_login'),
  // HOME is private here, but commits are still the user's.
  settings: ({ home, env }) => [
    { from: join(home, '.iflow', 'settings.json'), to: '.iflow/settings.json' },
    { from: join(home, '.gitconfig'), to: '.gitconfig' },
    { from: join(env['XDG_CONFIG_HOME'] ?? join(home, '.config'), 'git'), to: '.config/git', only: GIT_FILES },
  ],
  sessions: { folder: '.iflow', holds: (path, id) => path.includes(id) && 'by name' },
};
