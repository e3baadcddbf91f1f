/** Explains an event of `move/enclave` in a sentence. */
import type { EnclaveEvent } from 'sui-enclave/sui';
import { duration, timestamp } from '../lib/times.ts';
import { visibleText } from '../lib/visible_text.ts';

export function describeEvent(event: EnclaveEvent): string {
  switch (event.name) {
    case 'EnclaveCapCreated':
      return 'A capability was created';
    case 'EnclaveConfigCreated':
      return `The config was created as “${visibleText(event.data.name, 80)}”, version ${event.data.configVersion}`;
    case 'OpenConfigCreated':
      return 'The config is open: anyone may register enclaves';
    case 'PcrsUpdated': {
      const { configVersion, overlapUntilMs } = event.data;
      const overlap =
        overlapUntilMs === null
          ? 'enclaves of older versions are stale'
          : `the previous version is accepted until ${timestamp(Number(overlapUntilMs))}`;
      return `New registers: version ${configVersion}; ${overlap}`;
    }
    case 'OverlapEnded':
      return `The overlap ended: only version ${event.data.configVersion} is accepted`;
    case 'NameUpdated':
      return `The config is named “${visibleText(event.data.name, 80)}”`;
    case 'MaxKeyAgeUpdated': {
      const { maxKeyAgeMs } = event.data;
      return maxKeyAgeMs === null
        ? 'Keys may be of any age'
        : `Keys may be at most ${duration(Number(maxKeyAgeMs))} old`;
    }
    case 'ConfigRetired':
      return 'The config was retired: contracts accept none of its enclaves';
    case 'ConfigMigrated':
      return `The config moved to version ${event.data.packageVersion} of the package`;
    case 'RegistrarCapCreated':
      return 'A registrar was created';
    case 'RegistrarCapRevoked':
      return 'A registrar was revoked';
    case 'EnclaveRegistered':
      return `An enclave was registered at version ${event.data.configVersion}`;
    case 'EnclaveDestroyed':
      return `An enclave of version ${event.data.configVersion} was destroyed`;
  }
}

/** Returns the id of the object, other than the config, that the event names. */
export function findSubject({ data }: EnclaveEvent): string | undefined {
  if ('enclaveId' in data) return data.enclaveId;
  if ('registrarId' in data) return data.registrarId;
  return undefined;
}
