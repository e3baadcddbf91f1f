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
export { ApplicationMistake, ConfigError, quantity } from './library/errors.ts';
export { budgetFrom } from './server/budget.ts';
export { boolean, type Env, integer, string } from './server/env.ts';
export { type ErrorTable, errorClass } from './server/errors.ts';
export { getJson } from './server/get_json.ts';
export { RateLimit } from './server/rate_limit.ts';
export type { SignedAnswer } from './server/signer.ts';
export { ExchangeFailed, type UpstreamBounds, type Upstreams } from './server/upstream.ts';
export { waitForOther } from './server/waiting.ts';
export { text, type U64Input, u8, u64 } from './library/wire/bcs.ts';
export { type SignedType, signedType } from './library/wire/intent.ts';
export { address, bool, bytes, option, u16, u32, u128, u256, vector } from './library/wire/move.ts';
export { type Struct, struct } from './library/wire/struct.ts';
