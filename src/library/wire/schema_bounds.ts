/** Limits that every reader of a schema.json applies. Browser-safe. */

/** Maximum size of a schema.json, in bytes of UTF-8. */
export const MAX_SCHEMA_SIZE = 65_536;
/** Maximum nesting of objects and lists within the outermost object. */
export const MAX_SCHEMA_DEPTH = 8;

/** Returns whether objects and lists of parsed JSON nest deeper than a schema may. */
export function isTooDeep(value: unknown, levels = MAX_SCHEMA_DEPTH): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels < 0 || Object.values(value).some((part) => isTooDeep(part, levels - 1));
}
