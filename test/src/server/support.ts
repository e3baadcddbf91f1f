/** Servers for the tests of several modules. */
export { changeDeadline } from '../../../src/testing/change_deadline.ts';
export { APPS, startServer, startWeather, type TestServer } from '../../../src/testing/start_server.ts';

export const FIXTURE_APPS = new URL('../../fixtures/apps/', import.meta.url);

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
