// Starts a resident engine, and reports known obstacles as reasons to refuse the turn.
import { AppServerError } from './app-server-error.js';
import { openResidentCodex } from './resident-codex.js';
import type { Surroundings } from './start-app-server.js';
import type { Resident, ResidentStart } from '../engines/resident.js';
import { refuseTurn } from '../run/turn-refused-error.js';

export async function startResident(start: ResidentStart, surroundings: Surroundings): Promise<Resident> {
  try {
    return await openResidentCodex(start, surroundings);
  } catch (error) {
    if (error instanceof AppServerError && error.code === 'codex_not_found')
      throw refuseTurn('ENGINE_NOT_FOUND.other', { reason: error.message });
    if (error instanceof AppServerError && error.code === 'bad_options')
      throw refuseTurn('ENGINE_SETTINGS_INVALID.unreadable', { reason: error.message });
    throw error;
  }
}
