// How damage of stored data is described, in English. The command line translates it by key.
import { createMessages } from './message.js';

export const DAMAGE_TEXTS = {
  'damage.not_json': '{what} is no JSON: {reason}',
  'damage.row': 'a row of the database: {reason}',
  'damage.of': '{column} of {owner}',
  'damage.run': 'run {run}',
  'damage.question': 'question {question} of run {run}',
  'damage.turn': 'turn {turn} of run {run}',
  'damage.delivery': 'delivery {delivery}',
  'damage.request': 'request {request}',
  'damage.empty': '{what} is empty',
  'damage.not_number': '{what} is no number',
  'damage.not_time': '{what} is no time',
  'damage.not_text': '{what} is no text',
  'damage.not_run_id': '{what} is not the id of a run',
  'damage.none_of': '{what} is none of {all}',
  'damage.form': '{what} does not have the form it was written in',
  'damage.other_request': '{what} is not that of its request',
  'damage.too_large': 'a number of run {run} is too large. Delete the run first: parley rm {run}',
  'damage.not_bytes': 'a piece of the journal is no bytes',
  'damage.not_unpacked': 'a piece of the journal cannot be unpacked',
  'damage.size': 'a piece of the journal has {bytes} bytes instead of {expected}',
  'damage.missing_events': 'events {from} to {to} are missing from the journal',
  'damage.missing_of_run': '{journal} events {from} to {to} of run {run} are missing from the journal',
  'damage.piece_count': 'the piece of the journal with events {from} to {to} holds {count} instead of {expected}',
  'damage.piece_end': 'the piece of the journal with events {from} to {to} has more behind its last event',
  'damage.piece': '{journal} events {from} to {to}: {problem}',
  'damage.missing': 'missing from the journal',
  'damage.line_not_json': 'not JSON',
  'damage.other_event': 'another event is stored in its place',
  'damage.several': '{count} parts of the journal that follow each other are damaged',
} as const;

export const damageText = createMessages(DAMAGE_TEXTS);
