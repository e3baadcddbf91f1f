/** Shortens names for readers: leaves out the addresses of packages, which links and details show. */
import { visibleText } from '../lib/visible_text.ts';

/** Shortens `0x2::coin::Coin<0x2::sui::SUI>` to `Coin<SUI>`. */
export function shortenType(type: string): string {
  // Without \b, a long text without a name would take time quadratic in its length.
  return visibleText(type.replace(/\b(?:0x)?[0-9a-f]+::\w+::/gi, ''), 200);
}

/**
 * Shortens `0x12::weather::update_weather` to `weather::update_weather`, and leaves names of other commands
 * unchanged.
 */
export function shortenCall(call: string): string {
  return visibleText(call.replace(/^(?:0x)?[0-9a-f]+::/i, ''), 120);
}

/** Returns the beginning of an id or a digest. */
export function shortenId(id: string): string {
  return id.length > 12 ? `${visibleText(id.slice(0, 10))}…` : visibleText(id, 20);
}
