// The home of `codex exec`, but for the file of a turn: the server reads its settings once, and what a turn may do is
// said to it.
import type { HomeRules } from '../engine.js';
import { codexHome } from '../codex/home.js';

const { turnFile: _turnFile, ...home } = codexHome;

export const codexAppServerHome: HomeRules = home;
