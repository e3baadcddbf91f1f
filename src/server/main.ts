/** The production entry, `npm start`, with the real configuration, services and NSM. */
import { readFileSync } from 'node:fs';
import { loadApplication } from './application/load_application.ts';
import { BUILT_ADDON } from './built_addon.ts';
import { start } from './start.ts';

const { version } = JSON.parse(readFileSync(new URL('./package.json', import.meta.url), 'utf8'));

await start({
  version,
  nsmAddon: BUILT_ADDON,
  load: (name) => loadApplication(new URL('../apps/', import.meta.url), name),
  // Only this entry has a default, since an image names its application and must not start another one.
  defaultApp: 'weather',
});
