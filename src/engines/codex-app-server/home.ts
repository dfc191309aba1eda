// The home of `codex exec`, without the file of a turn: the server reads its settings once, and requests say what a
// turn may do.
import type { HomeRules } from '../engine.js';
import { codexHome } from '../codex/home.js';

const { turnFile: _turnFile, ...home } = codexHome;

export const codexAppServerHome: HomeRules = home;
