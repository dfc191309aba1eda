// One server for a long time, as a bench: what lib/soak-server.mjs tells, kept and drawn.
import soak from './lib/soak-server.mjs';
import { tell } from './lib/figures.mjs';

const MIB = 1024 * 1024;

export default {
  name: 'soak',
  ids: [],
  title: 'Many runs through one server, 20 lasting clients',
  says:
    'One round, as it is long. A fifth of the runs asks and is answered. Memory, heap and open files of the ' +
    'server once a second; flat is that the median of the last quarter of the runs is within a tenth of that ' +
    'of the second. In the first quarter a fresh process grows into its caches (16 MiB of pages for readers, ' +
    'compiled code).',
  figures: {
    runs: { better: null },
    'MiB, first quarter': { better: null },
    'MiB, second quarter': { better: null },
    'MiB, last quarter': { better: null },
    'heap KiB/run': { better: 'less', says: 'how much it grew for each run of the second half' },
    'open files, second quarter': { better: null },
    'open files, last quarter': { better: null },
    lost: {
      better: 'less',
      right: 0,
      says: 'events that a reader missed, or got twice, or ends that a lasting client was not told',
    },
    'runs/s': { better: 'more' },
  },
  plots: [],
  rounds: 1,
  async open() {
    const { samples, summary } = await soak();
    const blind = ['rss', 'heap', 'fds'].find((name) => Object.values(summary[name]).some(Number.isNaN));
    if (blind !== undefined)
      throw new Error(`a quarter of the runs has no sample of ${blind}: PARLEY_SOAK_RUNS asks for more runs`);
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
        `${tell(of('Parley', 'MiB, second quarter'))} to ${tell(of('Parley', 'MiB, last quarter'))} MiB, ` +
        `${tell(of('Parley', 'open files, last quarter'))} files, ${tell(of('Parley', 'lost'))} lost`,
      reached: !verdict.includes('GROWING') && of('Parley', 'lost') === 0 && verdict.includes('are closed'),
    },
  ],
};
