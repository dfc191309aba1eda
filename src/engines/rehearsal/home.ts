// The rehearsal stores only its sessions, each in a file that is named after its id. It needs no login.
import type { HomeRules } from '../engine.js';

export const rehearsalHome: HomeRules = {
  environment: (home) => ({ HOME: home }),
  passes: [],
  logins: () => [],
  keys: [],
  howToLogIn: '',
  settings: () => [],
  sessions: {
    folder: '.parley-rehearsal/sessions',
    holds: (path, id) => path.endsWith(`/${id.toLowerCase()}.json`) && 'by name',
  },
};
