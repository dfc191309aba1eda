// One server for a long time, as a bench: stores and draws the report of lib/soak-server.mjs.
import soak from './lib/soak-server.mjs';
import { format } from './lib/figures.mjs';

const MIB = 1024 * 1024;

export default {
  name: 'soak',
  ids: [],
  title: 'Many runs through one server, 20 lasting clients',
  description:
    'One round, because it is long. A fifth of the runs ask and are answered. Memory, heap and open files of the ' +
    'server are sampled once a second; "flat" means that the median of the last quarter of the runs is within a ' +
    'tenth of that of the second quarter. In the first quarter a fresh process fills its caches (16 MiB of pages ' +
    'for readers, compiled code).',
  figures: {
    runs: { better: null },
    'MiB, first quarter': { better: null },
    'MiB, second quarter': { better: null },
    'MiB, last quarter': { better: null },
    'heap KiB/run': { better: 'less', description: 'growth for each run of the second half' },
    'open files, second quarter': { better: null },
    'open files, last quarter': { better: null },
    lost: {
      better: 'less',
      right: 0,
      description: 'events that a reader missed or received twice, and ends that a lasting client did not receive',
    },
    'runs/s': { better: 'more' },
  },
  plots: [],
  rounds: 1,
  async open() {
    const { samples, summary } = await soak();
    const blind = ['rss', 'heap', 'fds'].find((name) => Object.values(summary[name]).some(Number.isNaN));
    if (blind !== undefined)
      throw new Error(`a quarter of the runs has no sample of ${blind}: PARLEY_SOAK_RUNS can set more runs`);
    const over = (name, unit) =>
      samples.filter((sample) => sample[name] !== null).map((sample) => ({ x: sample.done, y: sample[name] / unit }));
    return {
      systems: [
        {
          who: 'Parley',
          round: () => ({
            runs: summary.runs,
            'MiB, first quarter': summary.rss.first / MIB,
            'MiB, second quarter': summary.rss.second / MIB,
            'MiB, last quarter': summary.rss.last / MIB,
            'heap KiB/run': summary.heap.slope / 1000 / 1024,
            'open files, second quarter': summary.fds.second,
            'open files, last quarter': summary.fds.last,
            lost: summary.lost + summary.duplicate + summary.untold,
            'runs/s': summary.runs / summary.seconds,
          }),
        },
      ],
      more: () => ({
        verdict: summary.verdict,
        lines: [
          { title: 'Memory of the server (MiB) over runs', x: 'runs done', y: 'MiB', points: over('rss', MIB) },
          { title: 'Heap of the server (MiB) over runs', x: 'runs done', y: 'MiB', points: over('heap', MIB) },
          { title: 'Open files of the server over runs', x: 'runs done', y: 'files', points: over('fds', 1) },
        ],
      }),
      close: async () => {},
    };
  },
  aims: (of, { verdict = '' }) => [
    {
      aim: 'memory and open files are flat, nothing is lost',
      got:
        `${format(of('Parley', 'MiB, second quarter'))} to ${format(of('Parley', 'MiB, last quarter'))} MiB, ` +
        `${format(of('Parley', 'open files, last quarter'))} files, ${format(of('Parley', 'lost'))} lost`,
      reached: !verdict.includes('GROWING') && of('Parley', 'lost') === 0 && verdict.includes('are closed'),
    },
  ],
};
