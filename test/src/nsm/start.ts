import { onTestFinished } from 'vitest';
import { type Answer, Child, Driver } from './driver.ts';

/** A driver and a process that uses it; both end with the test. */
export function start(answer: Answer = () => new Uint8Array(1)): { driver: Driver; child: Child } {
  const driver = new Driver(answer);
  const child = new Child(driver);
  onTestFinished(() => {
    child.process.kill('SIGKILL');
    driver.stop();
  });
  return { driver, child };
}
