// Starts an engine that stays, as one that a run can be told of when it does not start.
import { AppServerError } from '../app-server/app-server-error.js';
import { openResidentCodex } from '../app-server/resident-codex.js';
import type { Surroundings } from '../app-server/start-app-server.js';
import type { Resident, ResidentStart } from '../engines/resident.js';
import { TurnRefusedError } from '../run/turn-refused-error.js';

export async function startResident(start: ResidentStart, surroundings: Surroundings): Promise<Resident> {
  try {
    return await openResidentCodex(start, surroundings);
  } catch (error) {
    if (error instanceof AppServerError && error.code === 'codex_not_found')
      throw new TurnRefusedError('ENGINE_NOT_FOUND', error.message);
    if (error instanceof AppServerError && error.code === 'bad_options')
      throw new TurnRefusedError('ENGINE_SETTINGS_INVALID', error.message);
    throw error;
  }
}
