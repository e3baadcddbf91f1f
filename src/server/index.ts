/** All that an application imports of this project: `src/apps/README.md` has one. The server itself doesn't import it. */
export {
  type AppContext,
  type Application,
  type Caller,
  defineApp,
  type Endpoint,
  endpoint,
  processData,
  type Routes,
} from './app.ts';
export { ApplicationMistake, ConfigError, quantity } from '../library/errors.ts';
export { budgetFrom } from '../service/budget.ts';
export { boolean, type Env, integer, string } from '../service/env.ts';
export { type ErrorTable, errorClass } from '../service/errors.ts';
export { getJson } from '../service/get_json.ts';
export { RateLimit } from '../service/rate_limit.ts';
export type { SignedAnswer } from './signer.ts';
export { ExchangeFailed, type UpstreamBounds, type Upstreams } from '../service/upstream.ts';
export { waitForOther } from '../service/waiting.ts';
export { text, type U64Input, u8, u64 } from '../library/wire/bcs.ts';
export { type SignedType, signedType } from '../library/wire/intent.ts';
export { address, bool, bytes, option, u16, u32, u128, u256, vector } from '../library/wire/move.ts';
export { type Struct, struct } from '../library/wire/struct.ts';
