/** The methods that an application's own routes support, for the preflights of browsers. */
import type { Router } from 'express';

/**
 * Methods that are assumed for a handler of `use`, which does not declare its methods: it may serve files, or
 * be a middleware before routes.
 */
const OF_USE = ['GET', 'HEAD', 'POST'];
/** Methods that are assumed for a handler of `all`. */
const OF_ALL = [...OF_USE, 'PUT', 'PATCH', 'DELETE'];

/** The record of a handler in Express' router. */
interface Layer {
  readonly handle: { readonly length: number; readonly stack?: readonly Layer[] };
  readonly route?: { readonly methods: Readonly<Record<string, boolean>> };
  /**
   * Returns the part of the path that the handler matches.
   *
   * @throws URIError if a parameter can't be decoded
   */
  match(path: string): false | { readonly path: string };
}

/**
 * Returns the methods of the routes that match a path, including those of routers within the router.
 *
 * @param path below the router, beginning with a slash
 * @returns the methods in upper case. If no route matches, the methods assumed for a handler of `use`
 */
export function methodsAt({ stack }: Pick<Router, 'stack'>, path: string): readonly string[] {
  try {
    const methods = [...new Set(methodsIn(stack as unknown as readonly Layer[], path))];
    return methods.length === 0 ? OF_USE : methods;
  } catch {
    return OF_USE;
  }
}

function methodsIn(stack: readonly Layer[], path: string): string[] {
  return stack.flatMap((layer) => {
    const matched = layer.match(path);
    if (!matched) return [];
    if (layer.route) return listMethods(Object.keys(layer.route.methods));
    const { stack: nested, length } = layer.handle;
    // Express takes a handler with more than three parameters for a handler of errors.
    if (length > 3) return [];
    return nested ? methodsIn(nested, `/${path.slice(matched.path.length).replace(/^\//, '')}`) : OF_USE;
  });
}

/** @param names the methods in a route's form: in lower case, and `_all` for a handler of all methods */
function listMethods(names: readonly string[]): string[] {
  if (names.includes('_all')) return OF_ALL;
  const methods = names.map((name) => name.toUpperCase());
  return methods.includes('GET') ? [...methods, 'HEAD'] : methods;
}
