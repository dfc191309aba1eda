// The same program as for `codex exec`.
import type { ProbeRules } from '../engine.js';
import { codexProbe } from '../codex/probe.js';

export const codexAppServerProbe: ProbeRules = { ...codexProbe, programOf: 'codex' };
