/** What every reader of a schema.json refuses. Browser-safe. */

/** In bytes of UTF-8. */
export const MAX_SCHEMA_SIZE = 65_536;
/** How deep objects and lists may lie in the outermost object. */
export const MAX_SCHEMA_DEPTH = 8;

/** Whether objects and lists of parsed JSON nest deeper than a schema may. */
export function isTooDeep(value: unknown, levels = MAX_SCHEMA_DEPTH): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels < 0 || Object.values(value).some((part) => isTooDeep(part, levels - 1));
}
