// The machine on which engines run: the user, Node, and the programs that come with Parley.
import type { User } from '../engines/engine.js';

export interface Machine {
  readonly user: User;
  // The Node program that runs this process.
  readonly node: string;
  // The folder of the built program. It contains the scripts of bundled engines.
  readonly programs: string;
  // For instance linux-x64.
  readonly platform: string;
  readonly pid: number;
  // The command that starts the question tool.
  readonly askTool: readonly string[];
}
