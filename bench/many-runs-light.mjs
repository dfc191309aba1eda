// Two hundred concurrent runs with a small engine written in C, so that the system is measured and not its engines.
import { format } from './lib/figures.mjs';
import { buildLightEngine } from './lib/light-engine.mjs';
import { CLIENTS, RUNS, description, figures, openManyRuns } from './lib/many-runs.mjs';

export default {
  name: 'many-runs-light',
  ids: [],
  title: `As agents talk: ${RUNS} concurrent runs with light engines, read by ${CLIENTS} clients`,
  description:
    `${description} The engine is a small program written in C, because two hundred Node processes occupy two cores ` +
    'by themselves. With PARLEY_BENCH_BEFORE=FOLDER, an earlier version that was built there is measured in the same ' +
    'rounds.',
  figures,
  plots: ['ms p50', 'ms p99', 'server µs/event', 'bytes written/event', 'bytes in use/event, merged'],
  rounds: 5,
  open: async () => openManyRuns(buildLightEngine()),
  aims: (of) => [
    {
      aim: 'p50 2 ms, p99 25 ms, none lost, none twice',
      got:
        `${format(of('Parley', 'ms p50'))} ms, ${format(of('Parley', 'ms p99'))} ms, ` +
        `${format(of('Parley', 'lost'))} lost, ${format(of('Parley', 'twice'))} twice`,
      reached:
        of('Parley', 'ms p50') <= 2 &&
        of('Parley', 'ms p99') <= 25 &&
        of('Parley', 'lost') === 0 &&
        of('Parley', 'twice') === 0,
    },
    {
      aim: `at most 2,000 bytes written and 400 kept per event`,
      got:
        `${format(of('Parley', 'bytes written/event'))} written, ${format(of('Parley', 'bytes kept/event'))} kept ` +
        `(${format(of('Parley', 'bytes in use/event, merged'))} in use after merging)`,
      reached: of('Parley', 'bytes written/event') <= 2000 && of('Parley', 'bytes kept/event') <= 400,
    },
  ],
};
