/** The commands of the program, each loaded only if it runs. */
import { type CommandModule, loadToolchain } from './toolchain.ts';

/** Headings of the help, by the people who use the commands below them, in order. */
export const READERS = {
  author: 'Write an application',
  admin: 'Register enclaves on Sui, and manage them',
  operator: 'Run enclaves on a parent instance, and build images',
  wallet: 'Log users in with zkLogin',
  maintainer: 'Maintain this repository',
} as const;

export interface Entry {
  readonly reader: keyof typeof READERS;
  /** One line for the help, as a verb and its object. */
  readonly summary: string;
  /** Whether the command needs a clone of this repository, and is thus missing from the installed package. */
  readonly inClone?: boolean;
  load(): Promise<CommandModule>;
}

const toolchainLoaders = new Set<Entry['load']>();

/** Returns whether the command is in the toolchain, which is a separate package. */
export const needsToolchain = ({ load }: Entry): boolean => toolchainLoaders.has(load);

/** Loads a command of the toolchain. */
function fromToolchain(name: string): Entry['load'] {
  const loadCommand = async () => {
    const { commands } = await loadToolchain();
    const load = commands[name];
    if (load === undefined) throw new Error(`the toolchain lacks the command ${name}`);
    return await load();
  };
  toolchainLoaders.add(loadCommand);
  return loadCommand;
}

export const COMMANDS: Readonly<Record<string, Entry>> = {
  new_app: {
    reader: 'author',
    summary: 'write a new application with its tests, fakes and Move package',
    inClone: true,
    load: fromToolchain('new_app'),
  },
  schema: {
    reader: 'author',
    summary: 'write the schemas of applications, which their images serve',
    load: fromToolchain('schema'),
  },
  gen: {
    reader: 'author',
    summary: 'write Move structs, test vectors and a client module of the types that an application signs',
    load: fromToolchain('gen'),
  },
  dev: {
    reader: 'author',
    summary: 'start an application against fakes, and restart it when a file changes',
    load: fromToolchain('dev'),
  },
  test: {
    reader: 'author',
    summary: 'check the types of an application, and run its tests and those of its contract',
    load: fromToolchain('test'),
  },
  dev_sui: {
    reader: 'author',
    summary: 'start a model of a Sui node on loopback',
    load: fromToolchain('dev_sui'),
  },
  compile: {
    reader: 'author',
    summary: 'compile a package of move/ to a file, for publish and upgrade on another machine',
    load: fromToolchain('compile'),
  },
  submit: {
    reader: 'author',
    summary: 'call a Move function with a signed answer of an enclave',
    load: () => import('./sui/submit.ts'),
  },
  update_weather: {
    reader: 'author',
    summary: 'mint a signed reading of the weather application',
    load: () => import('./sui/update_weather.ts'),
  },
  publish: {
    reader: 'admin',
    summary: 'publish a package of move/',
    load: () => import('./sui/publish.ts'),
  },
  upgrade: {
    reader: 'admin',
    summary: 'upgrade a published package',
    load: () => import('./sui/upgrade.ts'),
  },
  create_config: {
    reader: 'admin',
    summary: 'create the config that names the trusted image',
    load: () => import('./sui/create_config.ts'),
  },
  call: {
    reader: 'admin',
    summary: 'set up your contract: call one of its functions with the capability',
    load: () => import('./sui/call.ts'),
  },
  update_config: {
    reader: 'admin',
    summary: 'rename a config, or set a maximum age of keys',
    load: () => import('./sui/update_config.ts'),
  },
  update_pcrs: {
    reader: 'admin',
    summary: 'allow another image; all registered enclaves become stale',
    load: () => import('./sui/update_pcrs.ts'),
  },
  migrate_config: {
    reader: 'admin',
    summary: 'let only the new version of the package use a config',
    load: () => import('./sui/migrate_config.ts'),
  },
  retire_config: {
    reader: 'admin',
    summary: 'retire a config permanently',
    load: () => import('./sui/retire_config.ts'),
  },
  release: {
    reader: 'admin',
    summary: 'sign or withdraw a release, or verify who vouches for an image',
    load: () => import('./releases/release.ts'),
  },
  register_enclave: {
    reader: 'admin',
    summary: 'register the enclaves at the URLs that you pass',
    load: () => import('./sui/register_enclave.ts'),
  },
  rotate: {
    reader: 'admin',
    summary: 'allow another image and register its enclaves, in one transaction',
    load: () => import('./sui/rotate.ts'),
  },
  end_overlap: {
    reader: 'admin',
    summary: 'end the time in which two versions are accepted',
    load: () => import('./sui/end_overlap.ts'),
  },
  destroy_enclave: {
    reader: 'admin',
    summary: 'destroy a registered enclave',
    load: () => import('./sui/destroy_enclave.ts'),
  },
  add_registrar: {
    reader: 'admin',
    summary: 'allow an address to register enclaves',
    load: () => import('./sui/add_registrar.ts'),
  },
  revoke_registrar: {
    reader: 'admin',
    summary: 'revoke a registrar',
    load: () => import('./sui/revoke_registrar.ts'),
  },
  keep: {
    reader: 'admin',
    summary: 'keep the enclaves at some URLs registered, and destroy stale ones',
    load: () => import('./keeper/keep.ts'),
  },
  post: {
    reader: 'admin',
    summary: 'write the newest answer of some enclaves on chain, in each period',
    load: () => import('./poster/post.ts'),
  },
  rollout: {
    reader: 'admin',
    summary: 'replace the enclaves of an image by enclaves of the next image, without an interruption',
    load: () => import('./rollout/rollout.ts'),
  },
  status: {
    reader: 'admin',
    summary: 'print whether contracts accept the enclaves that answer',
    load: () => import('./sui/status.ts'),
  },
  verify: {
    reader: 'admin',
    summary: 'verify the attestation of an enclave, or of a saved document',
    load: () => import('./verify/verify_enclave.ts'),
  },
  audit: {
    reader: 'admin',
    summary: 'find the sources that a config names, and check that its image was built from them',
    load: fromToolchain('audit'),
  },
  provision: {
    reader: 'admin',
    summary: 'seal secrets to an attested enclave',
    load: () => import('./provision/provision.ts'),
  },
  configure_enclave: {
    reader: 'operator',
    summary: 'plan, apply or delete a CloudFormation stack of hosts for enclaves',
    load: () => import('./parent/configure_enclave.ts'),
  },
  doctor: {
    reader: 'operator',
    summary: 'check whether an enclave can run here, or explain an error code of nitro-cli',
    load: () => import('./parent/doctor.ts'),
  },
  run_enclave: {
    reader: 'operator',
    summary: 'run an image in an enclave',
    load: () => import('./parent/run_enclave.ts'),
  },
  expose_enclave: {
    reader: 'operator',
    summary: 'forward a port to a running enclave, and send the enclave its secrets',
    load: () => import('./parent/expose_enclave.ts'),
  },
  stop_enclave: {
    reader: 'operator',
    summary: 'stop an enclave and the processes that were started for it',
    load: () => import('./parent/stop_enclave.ts'),
  },
  host_install: {
    reader: 'operator',
    summary: 'install an enclave as systemd units of a parent instance',
    load: () => import('./parent/host_install.ts'),
  },
  host_boot: {
    reader: 'operator',
    summary: 'set up a host of deploy/aws at its first boot',
    load: () => import('./parent/host_boot.ts'),
  },
  host_upgrade: {
    reader: 'operator',
    summary: 'place another image for the next start of an installed enclave',
    load: () => import('./parent/host_upgrade.ts'),
  },
  host_status: {
    reader: 'operator',
    summary: 'print the faults of the enclaves of this host, and the commands that mend them',
    load: () => import('./parent/host_status.ts'),
  },
  host_remove: {
    reader: 'operator',
    summary: 'remove an installed enclave',
    load: () => import('./parent/host_remove.ts'),
  },
  export_events: {
    reader: 'operator',
    summary: 'write the closed events of the journal to a file, for an agent that ships logs',
    load: () => import('./logs/export_events.ts'),
  },
  build: {
    reader: 'operator',
    summary: 'build an enclave image and its registers',
    load: fromToolchain('build'),
  },
  verify_build: {
    reader: 'operator',
    summary: 'build an image again, and compare every byte',
    load: fromToolchain('verify_build'),
  },
  eif: {
    reader: 'operator',
    summary: 'build, describe or measure an enclave image file',
    load: fromToolchain('eif'),
  },
  notice: {
    reader: 'maintainer',
    summary: 'write NOTICE, which has the licences of all code in images and bundles',
    inClone: true,
    load: fromToolchain('notice'),
  },
  prover_images: {
    reader: 'operator',
    summary: 'build the containers of the proving service',
    inClone: true,
    load: fromToolchain('prover_images'),
  },
  play: {
    reader: 'author',
    summary: 'start everything at once: chain, contract, enclaves, console and pages',
    load: fromToolchain('play'),
  },
  dev_wallet: {
    reader: 'wallet',
    summary: "serve a wallet's page, to try zkLogin by hand",
    inClone: true,
    load: fromToolchain('dev_wallet'),
  },
  dev_prover: {
    reader: 'wallet',
    summary: 'start the proving service with a development key',
    inClone: true,
    load: fromToolchain('dev_prover'),
  },
  prove: {
    reader: 'wallet',
    summary: 'make one proof without a server',
    inClone: true,
    load: fromToolchain('prove'),
  },
  prover_check_key: {
    reader: 'wallet',
    summary: "check whether a file is one of zkLogin's published proving keys",
    load: fromToolchain('prover_check_key'),
  },
  prover_extract_generator: {
    reader: 'wallet',
    summary: 'extract the witness generator from a container image',
    load: fromToolchain('prover_extract_generator'),
  },
  prover_smoke: {
    reader: 'wallet',
    summary: 'test a proving service by requests to it',
    load: fromToolchain('prover_smoke'),
  },
  salt_seed: {
    reader: 'wallet',
    summary: "generate, split and restore the salt service's seed",
    load: () => import('./salt/salt_seed.ts'),
  },
  build_circuit: {
    reader: 'maintainer',
    summary: 'compile the circuit and make a development key',
    inClone: true,
    load: fromToolchain('build_circuit'),
  },
  build_engine: {
    reader: 'maintainer',
    summary: 'build the proving engine',
    inClone: true,
    load: fromToolchain('build_engine'),
  },
  bundle_digest: {
    reader: 'operator',
    summary: 'print the digest of the code in an image',
    load: fromToolchain('bundle_digest'),
  },
  check_locks: {
    reader: 'maintainer',
    summary: 'check that every locked file can still be downloaded',
    load: fromToolchain('check_locks'),
  },
  update_lock: {
    reader: 'maintainer',
    summary: "update the lock files to Debian's current versions",
    load: fromToolchain('update_lock'),
  },
};
