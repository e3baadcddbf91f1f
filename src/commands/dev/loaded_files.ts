/**
 * Tells the parent process which files of this repository a program imports, found or not; for `node --import`.
 * `main.ts` watches these, and no others.
 */
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

const ROOT = new URL('../../../', import.meta.url).href;
const reported = new Set<string>();

registerHooks({
  resolve(specifier, context, next) {
    try {
      const resolved = next(specifier, context);
      report(resolved.url);
      return resolved;
    } catch (error) {
      // It may be created later, or get its name back.
      if (/^(\.|file:)/.test(specifier)) report(new URL(specifier, context.parentURL).href);
      throw error;
    }
  },
});

function report(url: string): void {
  if (reported.has(url) || !url.startsWith(ROOT) || url.includes('/node_modules/')) return;
  reported.add(url);
  reportFile(new URL(url));
}

/** Also for files that a program reads. Does nothing in a process without a parent that listens. */
export function reportFile(file: URL): void {
  if (process.connected) process.send?.({ file: fileURLToPath(file) });
}
