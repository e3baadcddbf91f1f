/** Machine that runs chain_world.ts, and the services that have keys on its chain. */
import { basename } from 'node:path';
import { decodeSuiPrivateKey } from '@mysten/sui/cryptography';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import type { Facts } from './chain_world.ts';
import { until } from './machine.ts';
import { ParentMachine, PROGRAM } from './parent_machine.ts';
import { installUnit } from './walk.ts';

/** Path in the machine of the root certificate of the world's enclaves. */
export const ROOT = '/etc/sui-enclave/root.pem';
/** Gas budget of each transaction by default, in MIST: `gas_budget` in keeper.yaml and poster.yaml. */
export const GAS_BUDGET = 50_000_000;

/** Returns the URL of a port of the world. */
export const url = (port: number) => `http://127.0.0.1:${port}`;

/** A service of src/cli, and the names of its files in `/etc/sui-enclave`. */
export interface Service {
  /** Path of its unit in the repository. */
  readonly unit: string;
  /** Name of the service, and of its settings: `keeper` reads `keeper.yaml` and `keeper.env`. */
  readonly name: string;
  readonly keystore: string;
  readonly metricsPort: number;
}

export class ChainMachine extends ParentMachine {
  #facts: Facts | undefined;

  get facts(): Facts {
    if (this.#facts === undefined) throw new Error('the world does not run yet: call bootWorld');
    return this.#facts;
  }

  /** Starts systemd, and then the world. */
  async bootWorld(): Promise<void> {
    await this.boot();
    const options = ['--unit=world', '--setenv=HOME=/root', '--working-directory=/opt/sui-enclave'];
    this.mustRun('systemd-run', '--quiet', ...options, PROGRAM[0], 'test/e2e/units/chain_world.ts');
    await until('the world runs', () => this.tell('facts') !== '');
    this.#facts = JSON.parse(this.tell('facts'));
    this.write(ROOT.slice(1), this.facts.rootPem);
  }

  /** Sends a command to the world. @returns its answer */
  tell(command: string): string {
    return this.get(4000, command);
  }

  /** Returns the value of `--network`, and the further options of commands about the config. */
  formatConfigOptions(): string {
    const { node, config } = this.facts.keeper;
    return `localnet --rpc-url ${node} --root ${ROOT} --config ${config}`;
  }

  /** Returns these options, and the ids that an admin's commands need. */
  formatOptions(): string {
    const { package: enclavePackage } = this.facts.keeper;
    return `${this.formatConfigOptions()} --enclave-package ${enclavePackage} --app-package ${enclavePackage} --module weather --witness WEATHER`;
  }

  /**
   * Environment of an admin's commands. Deployments go elsewhere, since the repository is read-only in the
   * machine.
   */
  get adminVariables(): Readonly<Record<string, string>> {
    return { SUI_PRIVATE_KEY: this.facts.adminKey, DEPLOYMENTS: '/var/tmp/deployments' };
  }

  /** Installs a service's unit and its private key (`suiprivkey…`). */
  installService({ unit, name, keystore }: Service, privateKey: string): void {
    const { secretKey } = decodeSuiPrivateKey(privateKey);
    const address = Ed25519Keypair.fromSecretKey(secretKey).toSuiAddress();
    const key = Buffer.from([0, ...secretKey]).toString('base64');
    this.write(`etc/sui-enclave/${name}.env`, `${name.toUpperCase()}_ADDRESS=${address}\n`);
    this.write(`etc/sui-enclave/${keystore}`, JSON.stringify([key]), 0o600);
    // Walks start a service more often than systemd allows by default. Without the cache, each start would
    // compile all modules.
    const cache = `%S/${basename(unit, '.service')}/compile-cache`;
    this.write(
      `etc/systemd/system/${basename(unit)}.d/test.conf`,
      `[Unit]\nStartLimitIntervalSec=0\n[Service]\nEnvironment=NODE_COMPILE_CACHE=${cache}\n`,
    );
    installUnit(this, unit);
  }

  /** Writes a service's YAML file, which it reads at its start, for the enclaves at these ports. */
  writeServiceFile({ name, metricsPort }: Service, ports: readonly number[], content: object): void {
    const settings = { interval: 1, max_pause: 1, metrics_port: metricsPort, root: ROOT };
    const enclaves = ports.map(url);
    this.write(`etc/sui-enclave/${name}.yaml`, JSON.stringify({ ...settings, enclaves, ...content }));
  }
}
