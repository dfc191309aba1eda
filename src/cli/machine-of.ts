// Describes the machine on which a command runs.
import type { Machine } from '../machine/machine.js';
import type { Io } from './io.js';

export function machineOf({ env, machine }: Io): Machine {
  return {
    user: { home: machine.home, env },
    node: machine.node,
    programs: machine.programs,
    platform: `${machine.platform}-${machine.arch}`,
    pid: machine.pid,
    askTool: [machine.node, machine.entry, 'mcp-ask'],
  };
}
