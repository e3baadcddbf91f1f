/**
 * Checks names of applications. Move packages and modules get the same names, and identifiers in Move and
 * TypeScript contain them.
 */

const NAME = /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/;
const MAX_LENGTH = 32;
/** Keywords of Move, and names of packages and modules that the templates use. */
const RESERVED_IN_MOVE =
  'abort acquires as break const continue copy else enum false friend fun has if invariant let loop match module move mut native phantom public return script spec struct true type use while address bool signer vector u8 u16 u32 u64 u128 u256 clock enclave std string sui unit_test self tx_context';
/** Names that the templates' files declare or use, as constants in Move and as types in TypeScript. */
const USED_IN_TEMPLATES =
  'public_key signature signed signed_answer signed_bytes timestamp_ms feed source decimals minute_ms max_age_ms request answer date buffer big_int uint8_array';
const RESERVED = new Set(`${RESERVED_IN_MOVE} ${USED_IN_TEMPLATES}`.split(' '));

export const pascalCase = (name: string) =>
  name.replace(/(?:^|_)([a-z0-9])/g, (_, first: string) => first.toUpperCase());

/** Returns the reason why an application can't have this name; undefined if it can. */
export function nameProblem(name: string): string | undefined {
  if (!NAME.test(name) || name.length > MAX_LENGTH || RESERVED.has(name)) {
    return `must begin with a letter and consist of at most ${MAX_LENGTH} lower case letters, digits and single underscores, and must not be a keyword of Move or a name that the files use`;
  }
  // The application's own struct can't have the name of the one-time witness.
  if (pascalCase(name) === name.toUpperCase()) return 'must have two letters or more in a row';
  return undefined;
}
