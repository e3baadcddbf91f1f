import { availableParallelism } from 'node:os';
import { configDefaults, defineConfig } from 'vitest/config';

// Processes that tests start compile this project's modules once.
process.env['NODE_COMPILE_CACHE'] ??= `${import.meta.dirname}/build/compile-cache`;

/** They change or watch their process, or start others. */
const ISOLATED = [
  'test/enclave/**/*.test.ts',
  'test/src/cli/{keeper,parent,salt,sui,verify}/**/*.test.ts',
  'test/src/server/server.test.ts',
  'test/src/server/nsm/{addon,clock,device}.test.ts',
  'test/src/server/reports/{events,health,metrics}.test.ts',
  'test/src/server/secrets/secrets.test.ts',
  'test/src/prover/{engine,witness}.test.ts',
  'test/src/prover/backend/{backend,generator,supervisor}.test.ts',
  'test/src/service/{exchange,log,open_files,upstream_request}.test.ts',
  'test/src/service/http/{connections,hostile,in_flight,json_body}.test.ts',
];

export default defineConfig({
  // An example has copies of its own once it is installed: of the library, with other classes of errors, and of React.
  resolve: { dedupe: ['sui-enclave', 'react'] },
  test: {
    testTimeout: 20_000,
    maxWorkers: availableParallelism(),
    projects: [
      {
        extends: true,
        test: { name: 'isolated', include: ISOLATED, globalSetup: ['test/natives.ts'] },
      },
      {
        extends: true,
        test: {
          name: 'shared',
          include: ['{test,src/apps}/**/*.test.ts'],
          exclude: [...configDefaults.exclude, 'test/e2e/**', ...ISOLATED],
          isolate: false,
        },
      },
    ],
  },
});
