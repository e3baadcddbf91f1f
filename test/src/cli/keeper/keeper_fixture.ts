/** A chain with a config, and keepers with a registrar each. */
import { writeFileSync } from 'node:fs';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { connect } from '../../../../src/cli/sui/network.ts';
import { type Image, parsePcrs } from '../../../../src/library/attestation/index.ts';
import {
  type Enclave,
  type EnclaveConfig,
  listEnclaves,
  readConfig,
} from '../../../../src/library/sui/objects.ts';
import { callScript, type Result } from '../run.ts';
import { ChainFixture, ofConfig, PACKAGE } from '../sui/chain_fixture.ts';
import { script } from '../sui/run_script.ts';

/** The output of `keep --once --json`. */
export interface Printed {
  readonly status: string;
  readonly done: readonly { readonly kind: string; readonly subject: string; readonly result: string }[];
  readonly alerts: readonly { readonly code: string; readonly subject: string; readonly message: string }[];
  readonly accepted: number;
  readonly silent: number;
}

/** The operator's key, and the registrar that it holds. */
export interface Operator {
  readonly key: Ed25519Keypair;
  readonly registrar: string;
}

export class KeeperFixture {
  readonly chain: ChainFixture;
  readonly capId: string;
  readonly configId: string;
  readonly operator: Operator;
  #files = 0;

  private constructor(chain: ChainFixture, capId: string, configId: string, operator: Operator) {
    this.chain = chain;
    this.capId = capId;
    this.configId = configId;
    this.operator = operator;
  }

  /** Creates a chain and a config. @param validFrom start of the time in which enclaves may attest */
  static async start(validFrom = new Date()): Promise<KeeperFixture> {
    const chain = await ChainFixture.start(script, validFrom);
    const capId = chain.publish();
    const configId = await chain.config(capId);
    return new KeeperFixture(chain, capId, configId, await addOperator(chain, configId));
  }

  close(): void {
    this.chain.close();
  }

  /** Creates another keeper's key and registrar. */
  async addOperator(): Promise<Operator> {
    return await addOperator(this.chain, this.configId);
  }

  get image(): Image {
    return parsePcrs(this.chain.nsm.pcrsFile());
  }

  get sent(): number {
    return this.chain.node.ledger.executed.length;
  }

  /** Returns the content of a keeper's file for these URLs. JSON is YAML too. */
  content(urls: readonly string[], { registrar } = this.operator): Record<string, unknown> {
    return {
      node: this.chain.node.url,
      package: PACKAGE,
      config: this.configId,
      registrar,
      registers: this.image,
      enclaves: urls,
      root: 'root.pem',
      gas_a_day: 10_000_000_000,
    };
  }

  /** Writes a file beside the fixture's other files. Returns its path. */
  write(content: object): string {
    this.#files += 1;
    const path = this.chain.file(`keeper${this.#files}.yaml`);
    writeFileSync(path, JSON.stringify(content));
    return path;
  }

  /** Runs the command with no key but the keeper's. */
  async run(path: string, args: readonly string[], { key } = this.operator): Promise<Result> {
    const output = await callScript('keeper/keep.ts', [path, ...args], {
      env: { SUI_PRIVATE_KEY: key.getSecretKey() },
    });
    if ((output.stdout + output.stderr).includes('suiprivkey')) throw new Error('the command prints its key');
    return output;
  }

  /** Runs one round for these URLs. */
  async once(
    urls: readonly string[],
    { operator = this.operator, args = [] as readonly string[], ...changes }: Once = {},
  ): Promise<Printed & { readonly exit: number | null }> {
    const path = this.write({ ...this.content(urls, operator), ...changes.content });
    const { status, stdout } = await this.run(path, ['--once', '--json', ...args], operator);
    return { exit: status, ...JSON.parse(stdout) };
  }

  /** Returns the config on chain. */
  async config(): Promise<EnclaveConfig> {
    return await readConfig(connect(undefined, this.chain.node.url).client, this.configId);
  }

  /** Returns the enclaves on chain. */
  async enclaves(): Promise<readonly Enclave[]> {
    const { client } = connect(undefined, this.chain.node.url);
    return (await listEnclaves(client, await this.config())).enclaves;
  }

  async ids(): Promise<string[]> {
    return (await this.enclaves()).map(({ id }) => id).sort();
  }

  /** Registers the enclave at the URL at a new version with the same registers. All others become stale. */
  async rotateTo(url: string): Promise<string> {
    const { chain, configId } = this;
    const files = ['--pcrs', chain.file('dev.pcrs'), '--root', chain.file('root.pem')];
    const { enclave } = await chain.done('rotate', ...ofConfig(configId), url, '--again', ...files);
    return String(enclave);
  }
}

interface Once {
  readonly operator?: Operator;
  readonly args?: readonly string[];
  /** Additional properties of the file. */
  readonly content?: object;
}

async function addOperator(chain: ChainFixture, configId: string): Promise<Operator> {
  const key = new Ed25519Keypair();
  chain.node.ledger.give(key.toSuiAddress(), 5_000_000_000n);
  const { registrar } = await chain.done('add_registrar', ...ofConfig(configId), key.toSuiAddress());
  return { key, registrar: String(registrar) };
}
