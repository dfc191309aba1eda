// Two hundred concurrent runs with the engine that all benches use. Two hundred Node processes are themselves more work
// than two cores do without delay: many-runs-light measures the system alone.
import { format } from './lib/figures.mjs';
import { CLIENTS, EVENTS, RUNS, description, figures, openManyRuns } from './lib/many-runs.mjs';

export default {
  name: 'many-runs',
  ids: ['B11'],
  title: `${RUNS} concurrent runs of ${EVENTS} events each, read by ${CLIENTS} clients`,
  description,
  figures,
  plots: ['ms p99'],
  bounds:
    'The limit: the two cores, which two hundred engines, twenty clients and the server share, and the one thread ' +
    'of the server. Events of all runs that are written at the same time share one transaction ([decision ' +
    '0011](decisions/0011-writes-of-a-moment.md)), so the number of runs does not limit the speed; but while the ' +
    'thread waits for the disk or for a core, the events of all runs wait.',
  rounds: 5,
  open: async () => openManyRuns(''),
  aims: (of) => [
    {
      aim: 'p99 below 100 ms, none lost, none twice',
      got:
        `${format(of('Parley', 'ms p99'))} ms, ${format(of('Parley', 'lost'))} lost, ` +
        `${format(of('Parley', 'twice'))} twice`,
      reached: of('Parley', 'ms p99') < 100 && of('Parley', 'lost') === 0 && of('Parley', 'twice') === 0,
    },
  ],
};
