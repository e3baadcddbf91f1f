/**
 * Runs with `node --import`. Tells the parent process which files a program imports, whether they exist or
 * not. Leaves out files of npm packages. `main.ts` watches only the project's files among them.
 */
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

const reported = new Set<string>();

registerHooks({
  resolve(specifier, context, next) {
    try {
      const resolved = next(specifier, context);
      report(resolved.url);
      return resolved;
    } catch (error) {
      // The missing file may be created later, or may be renamed back.
      if (/^(\.|file:)/.test(specifier)) report(new URL(specifier, context.parentURL).href);
      throw error;
    }
  },
});

function report(url: string): void {
  if (reported.has(url) || !url.startsWith('file:') || url.includes('/node_modules/')) return;
  reported.add(url);
  reportFile(new URL(url));
}

/** Reports a file that a program loads or reads. Does nothing without a parent process that listens. */
export function reportFile(file: URL): void {
  if (process.connected) process.send?.({ file: fileURLToPath(file) });
}
