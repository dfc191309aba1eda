// Events to a consumer in the same process: the bare loop, other SDKs, our parser alone, and all of Parley with
// storage.
import { consume } from './lib/consumers.mjs';
import { format } from './lib/figures.mjs';
import { absent, acpSdk, peer } from './lib/peers.mjs';
import { earlierVersion } from './lib/systems.mjs';

const EVENTS = 100_000;
const BYTES = 64;
const LOAD = { events: EVENTS, bytes: BYTES };

export default {
  name: 'in-process',
  ids: ['B2'],
  title: `${EVENTS.toLocaleString('en')} events of ${BYTES} bytes to a consumer in the same process`,
  description:
    'Measured from the first bytes of the engine to the end of the turn. The row of the parser alone (RASP text ' +
    'with envelope and raw_ref) is comparable with the SDKs, which store nothing. The row below it is all of ' +
    'Parley, with FCMP, digests, log and files on disk; its consumer counts each event when it is committed.',
  pinned: 'The consumer has its own core; the engine has the other.',
  figures: {
    'events/s': { better: 'more' },
    'µs/event': { better: 'less', description: 'processor time of the consumer' },
    'peak MiB': { better: 'less' },
    lost: { better: 'less', right: 0 },
  },
  plots: ['events/s', 'µs/event'],
  async open() {
    const before = earlierVersion();
    const earlier = before && { ...LOAD, script: before.script('consume.mjs') };
    const systems = [
      { who: 'bare JSON.parse', round: () => consume('bare', LOAD) },
      peer('codex-sdk')
        ? { who: peer('codex-sdk').name, round: () => consume('codex-sdk', LOAD) }
        : absent('codex-sdk'),
      acpSdk()
        ? { who: `ACP SDK ${acpSdk().version} (of acpx)`, round: () => consume('acp-sdk', LOAD) }
        : absent('ACP SDK (of acpx)'),
      { who: "Parley's parser", note: 'nothing stored', round: () => consume('parser', LOAD) },
      { who: 'Parley, all stored', round: () => consume('parley', LOAD) },
      ...(earlier ? [{ who: `${before.who}, all stored`, round: () => consume('parley', earlier) }] : []),
    ];
    return { systems, close: async () => {} };
  },
  aims: (of) => [
    {
      aim: 'the parser costs at most twice as much per event as the Codex SDK',
      got: `${format(of("Parley's parser", 'µs/event') / of('codex-sdk', 'µs/event'))} times`,
      reached: of("Parley's parser", 'µs/event') <= 2 * of('codex-sdk', 'µs/event'),
    },
    {
      aim: '100,000 events/s with envelope and raw_ref, at most 10 µs each',
      got:
        `${format(of("Parley's parser", 'events/s'))} and ${format(of("Parley's parser", 'µs/event'))} µs parsed; ` +
        `${format(of('Parley, all stored', 'events/s'))} and ${format(of('Parley, all stored', 'µs/event'))} µs ` +
        'stored',
      reached: of('Parley, all stored', 'events/s') >= 100_000 && of('Parley, all stored', 'µs/event') <= 10,
    },
  ],
};
