// Applies changes of config.json to a running server. An invalid file changes nothing and is reported once.
import type { Logger } from 'pino';
import { refusalOf } from '../refusal-of.js';
import type { Timers } from '../../kernel/timers.js';
import type { LiveSettings } from '../../settings/live-settings.js';
import { watchSettings, type SettingsWatch } from '../../settings/watch-settings.js';

export interface ApplyOptions {
  readonly dataDir: string;
  readonly settings: LiveSettings;
  // The state of the file before the settings were read.
  readonly stamp: string;
  readonly timers: Timers;
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
  // Called after the settings have changed. Its failure is logged.
  readonly onApplied: () => Promise<void>;
}

export function applySettings({ dataDir, settings, stamp, timers, log, onApplied }: ApplyOptions): SettingsWatch {
  const onChange = async (): Promise<void> => {
    try {
      const { applied, needRestart } = settings.reload();
      if (applied.length > 0)
        log.info({ settings: applied }, `config.json was changed; applied: ${applied.join(', ')}`);
      if (needRestart.length > 0)
        log.warn(
          { settings: needRestart },
          `config.json was changed; restart the server to apply: ${needRestart.join(', ')}`,
        );
      await onApplied();
    } catch (error) {
      const refused = refusalOf(error);
      if (refused)
        log.warn(`The changed settings are not applied, the previous ones stay in force. ${refused.message}`);
      else log.error({ err: error }, 'a change of config.json could not be applied');
    }
  };
  return watchSettings(dataDir, { timers, stamp, onChange });
}
