/** The commands that need a compiler, a bundler or a fake. Each is loaded only if it runs. */
import type { CommandLoaders } from 'sui-enclave-cli/toolchain';

export const commands: CommandLoaders = {
  new_app: () => import('./dev/new_app.ts'),
  schema: () => import('./schema/schema.ts'),
  gen: () => import('./gen/gen.ts'),
  dev: () => import('./dev/main.ts'),
  test: () => import('./dev/test.ts'),
  dev_sui: () => import('./dev/sui/main.ts'),
  compile: () => import('./move/compile_command.ts'),
  audit: () => import('./audit/audit.ts'),
  build: () => import('./image/build.ts'),
  verify_build: () => import('./image/verify.ts'),
  eif: () => import('./image/eif.ts'),
  notice: () => import('./image/notice.ts'),
  prover_images: () => import('./prover/images.ts'),
  play: () => import('./dev/play/main.ts'),
  dev_wallet: () => import('./dev/wallet/main.ts'),
  dev_prover: () => import('./dev/prover/main.ts'),
  prove: () => import('./prover/prove.ts'),
  prover_check_key: () => import('./prover/check_key.ts'),
  prover_extract_generator: () => import('./prover/extract_generator.ts'),
  prover_smoke: () => import('./prover/smoke.ts'),
  build_circuit: () => import('./prover/build.ts'),
  build_engine: () => import('./prover/engine.ts'),
  bundle_digest: () => import('./image/bundle_digest.ts'),
  check_locks: () => import('./image/check_locks.ts'),
  update_lock: () => import('./image/update_lock.ts'),
};

/** Loads the compiler of packages in `move/`, for publish and upgrade. */
export const compiler = () => import('./move/compile.ts');

/** Signs releases in a run of a workflow. */
export const keyless = () => import('./release/keyless.ts');
