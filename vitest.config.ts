import { availableParallelism } from 'node:os';
import {
  configDefaults,
  defineConfig,
  type Plugin,
  type TestProjectInlineConfiguration,
} from 'vitest/config';

// Processes that tests start compile this project's modules once.
process.env['NODE_COMPILE_CACHE'] ??= `${import.meta.dirname}/build/compile-cache`;

/** Tests that change or watch their process, or start other processes. */
const ISOLATED = [
  'test/enclave/**/*.test.ts',
  'test/src/cli/parent/**/*.test.ts',
  'test/src/server/server.test.ts',
  'test/src/server/nsm/{addon,clock,device}.test.ts',
  'test/src/server/reports/{events,health,metrics}.test.ts',
  'test/src/server/secrets/secrets.test.ts',
  'test/src/prover/{engine,witness}.test.ts',
  'test/src/prover/backend/{backend,generator,supervisor}.test.ts',
  'test/src/service/{exchange,log,open_files,upstream_request}.test.ts',
  'test/src/service/http/{connections,hostile,in_flight,json_body}.test.ts',
];

type ProjectOptions = NonNullable<TestProjectInlineConfiguration['test']>;

// If one run has projects with different numbers of workers, these run one after the other. Without a number,
// Vitest leaves one processor free for the processes that tests start. Unit tests wait for sockets, timers
// and processes for a third of their time.
const TWO_WORKERS_PER_PROCESSOR = { maxWorkers: 2 * availableParallelism(), sequence: { groupOrder: 0 } };
const DEFAULT_WORKERS = { sequence: { groupOrder: 1 } };
const TWO_WORKERS = { maxWorkers: 2, sequence: { groupOrder: 2 } };
const ONE_WORKER = { maxWorkers: 1, sequence: { groupOrder: 3 } };

// On a busy machine, a test that takes 4 s alone may take 40 s.
const SHORT_TESTS = { testTimeout: 90_000, hookTimeout: 90_000 };
// The limit is long enough for a busy machine. It only ends a test that hangs.
const A_MINUTE_OF_POLLING = { expect: { poll: { timeout: 60_000 } } };
const THREE_MINUTES = { testTimeout: 180_000, hookTimeout: 180_000 };

const PROJECTS: ProjectOptions[] = [
  // `make test` runs these two.
  {
    name: 'isolated',
    include: ISOLATED,
    globalSetup: ['test/natives.ts'],
    ...SHORT_TESTS,
    ...TWO_WORKERS_PER_PROCESSOR,
  },
  {
    name: 'shared',
    include: ['{test,src/apps}/**/*.test.ts'],
    exclude: [...configDefaults.exclude, 'test/e2e/**', ...ISOLATED],
    isolate: false,
    ...SHORT_TESTS,
    ...TWO_WORKERS_PER_PROCESSOR,
  },
  // Runs the project's own commands as processes, as a reader of the READMEs starts them.
  { name: 'e2e', include: ['test/e2e/**/*.test.ts'], ...THREE_MINUTES, ...DEFAULT_WORKERS },
  // Tests the units of the parent instance under systemd. Machines wait most of the time.
  {
    name: 'units',
    include: ['test/e2e/units/*.units.ts'],
    globalSetup: ['test/e2e/units/setup.ts'],
    ...THREE_MINUTES,
    ...TWO_WORKERS,
  },
  // Boots one machine at a time, since emulation fills the processors.
  {
    name: 'boot',
    include: ['test/e2e/boot/**/*.boot.ts'],
    globalSetup: ['test/e2e/boot/setup.ts'],
    testTimeout: 180_000,
    hookTimeout: 180_000,
    ...ONE_WORKER,
  },
  // Audits honest and lying configs, on a model of Sui and with git behind https on loopback.
  {
    name: 'audit',
    include: ['test/e2e/audit/*.audit.ts'],
    ...THREE_MINUTES,
    ...DEFAULT_WORKERS,
  },
  // Tests a wallet from login to signature in headless Chromium (Debian's, or the one that CHROMIUM names).
  {
    name: 'wallet',
    include: ['test/e2e/wallet/*.e2e.ts'],
    ...THREE_MINUTES,
    ...DEFAULT_WORKERS,
  },
  // Tests the console in headless Chromium. Each file has a browser and servers of its own, and CI has two
  // cores.
  { name: 'console', include: ['test/e2e/console/*.e2e.ts'], ...THREE_MINUTES, ...TWO_WORKERS },
  // Tests the small circuit, its generators and proofs, as `make prover-dev SIZE=small` builds them. Each
  // file needs up to 2 GB of memory, and a minute on an idle machine can be ten on a busy one.
  {
    name: 'prover',
    include: [
      'test/src/prover/{circuit,backend,frontend}/*.prover.ts',
      'test/src/toolchain/dev/prover/*.prover.ts',
    ],
    testTimeout: 900_000,
    hookTimeout: 900_000,
    ...TWO_WORKERS,
  },
  // Starts HAProxy, and processes on loopback.
  { name: 'deploy', include: ['test/e2e/deploy/*.deploy.ts'], ...THREE_MINUTES, ...DEFAULT_WORKERS },
  // Runs commands against a model of AWS on loopback.
  { name: 'aws', include: ['test/e2e/aws/*.aws.ts'], ...THREE_MINUTES, ...DEFAULT_WORKERS },
  // Runs promtool on the metrics of the programs.
  { name: 'observe', include: ['test/e2e/observe/*.observe.ts'], ...THREE_MINUTES, ...DEFAULT_WORKERS },
  // Runs the verifier of Sui's validators, which Cargo builds.
  {
    name: 'registration',
    include: ['test/e2e/registration/*.judge.ts'],
    testTimeout: 120_000,
    ...DEFAULT_WORKERS,
  },
];

/**
 * Plugin that runs the modules with the attestation's test cases in Node, where they can make certificates
 * and documents. A page gets these modules as the data that they export.
 */
const casesAsData: Plugin = {
  name: 'attestation-cases-as-data',
  enforce: 'pre',
  async load(id) {
    if (!/\/test\/src\/library\/attestation\/cases\/(index|real)\.ts$/.test(id)) return null;
    const exported: Record<string, unknown> = await import(id);
    return Object.entries(exported)
      .map(([name, value]) => `export const ${name} = ${JSON.stringify(value)};`)
      .join('\n');
  },
};

/**
 * Returns the project that tests attestation, and the client against an enclave on loopback, in headless
 * Chromium.
 */
async function createBrowserProject(): Promise<TestProjectInlineConfiguration> {
  const { playwright } = await import('@vitest/browser-playwright');
  return {
    plugins: [casesAsData],
    test: {
      name: 'browser',
      include: [
        'test/src/library/attestation/{verify,attacks,result}.test.ts',
        'test/e2e/browser/*.browser.ts',
      ],
      globalSetup: ['test/e2e/browser/enclave.ts'],
      testTimeout: 60_000,
      ...A_MINUTE_OF_POLLING,
      ...DEFAULT_WORKERS,
      browser: {
        enabled: true,
        headless: true,
        screenshotFailures: false,
        provider: playwright({
          launchOptions: {
            executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
            // Chromium's own sandbox does not start for root; the pages are this project's.
            args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
          },
        }),
        instances: [{ browser: 'chromium' }],
      },
    },
  };
}

// Vitest resolves every project, even one that no argument names. This project loads the driver of a browser,
// so only `--project browser` includes it.
const browserProjects = process.argv.includes('browser') ? [await createBrowserProject()] : [];

export default defineConfig({
  // An installed example has its own copies of the library, whose classes of errors are different, and of
  // React.
  resolve: {
    dedupe: ['sui-enclave', 'react'],
    alias: { '@zktx.io/sui-move-builder/full': `${import.meta.dirname}/test/move_compiler.ts` },
  },
  test: {
    projects: [
      ...PROJECTS.map((test) => ({ test: { ...A_MINUTE_OF_POLLING, ...test } })),
      ...browserProjects,
    ],
  },
});
