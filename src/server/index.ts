/**
 * Everything that an application imports from this project. `src/apps/README.md` shows an application. The
 * server itself doesn't import this module.
 */

export { ApplicationMistake, ConfigError } from 'sui-enclave/errors';
export { text, type U64Input, u8, u64 } from 'sui-enclave/wire/bcs';
export { type SignedType, signedType } from 'sui-enclave/wire/intent';
export { address, bool, bytes, option, u16, u32, u128, u256, vector } from 'sui-enclave/wire/move';
export { type Struct, struct } from 'sui-enclave/wire/struct';
export { createBudget } from 'sui-enclave-service/budget';
export { boolean, integer, string } from 'sui-enclave-service/env';
export { type ErrorTable, errorClass } from 'sui-enclave-service/errors';
export { getJson } from 'sui-enclave-service/get_json';
export { RateLimit } from 'sui-enclave-service/rate_limit';
export {
  type Env,
  integerBetween,
  readSettings,
  type SettingTable,
  textSetting,
} from 'sui-enclave-service/settings';
export {
  isUpstreamError,
  type UpstreamBounds,
  type UpstreamClient,
  type UpstreamError,
  type Upstreams,
} from 'sui-enclave-service/upstream';
export { startShared, waitForShared } from 'sui-enclave-service/waiting';
export {
  type AppContext,
  type Application,
  type ApplicationModule,
  type Caller,
  defineApp,
  type Endpoint,
  endpoint,
  processData,
  type Routes,
} from './application/app.ts';
export type { SignedAnswer } from './keys/signer.ts';
export { type Task, type TaskContext, task } from './tasks/task.ts';
