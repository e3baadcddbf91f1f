/**
 * A chain, the enclaves of two images, and a control server, which the commands of a plan call. The server
 * starts and stops enclaves and switches callers, as an operator's programs do.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fromBase58, toHex } from '@mysten/sui/utils';
import { onTestFinished } from 'vitest';
import { findFreePort } from '../../../../scripts/check/bench/ports.ts';
import type { CommandName, SideName } from '../../../../src/cli/rollout/plan.ts';
import { startServer, type TestServer } from '../../server/support.ts';
import { KeeperFixture } from '../keeper/keeper_fixture.ts';
import { PACKAGE } from '../sui/chain_fixture.ts';

/** Script of a command in the plan: it calls the control server, and exits with its verdict. */
const CALL = `
const { status } = await fetch(process.argv[1] + (process.env.SUI_PRIVATE_KEY ?? ''), { method: 'POST' });
process.exit(status === 200 ? 0 : 1);`;

export class RolloutFixture {
  readonly keeper: KeeperFixture;
  readonly urls: Readonly<Record<SideName, readonly string[]>>;
  callersReach: SideName = 'old';
  /** Names of the commands that were run, in order. */
  readonly calls: string[] = [];
  /** Runs before and after the effect of a command. The command fails if this function throws. */
  hold: (name: string, isAfter: boolean) => Promise<void> | void = () => {};
  readonly #running = new Map<string, TestServer>();
  readonly #control = createServer(async (request, response) => {
    const name = (request.url ?? '').slice(1);
    this.calls.push(name);
    try {
      await this.hold(name, false);
      await this.#effects[name as CommandName]();
      await this.hold(name, true);
      response.end();
    } catch {
      response.writeHead(500).end();
    }
  });

  readonly #effects: Readonly<Record<CommandName, () => Promise<void>>> = {
    start: () => this.#start('new'),
    provision: async () => {},
    switch: async () => {
      this.callersReach = 'new';
    },
    switch_back: async () => {
      this.callersReach = 'old';
    },
    stop_old: () => this.#stop('old'),
    stop_new: () => this.#stop('new'),
  };

  private constructor(keeper: KeeperFixture, urls: Readonly<Record<SideName, readonly string[]>>) {
    this.keeper = keeper;
    this.urls = urls;
  }

  /** Starts a fixture with an old enclave that runs and is registered. */
  static async start(): Promise<RolloutFixture> {
    const keeper = await KeeperFixture.start();
    onTestFinished(() => keeper.close());
    const url = async () => `http://127.0.0.1:${await findFreePort()}`;
    const fixture = new RolloutFixture(keeper, { old: [await url()], new: [await url()] });
    await fixture.#listen();
    await fixture.#start('old');
    const { chain, configId, capId } = keeper;
    writeFileSync(chain.file('new.pcrs'), chain.createNsm('weather', 2).pcrsFile());
    await chain.register(configId, capId, fixture.urls.old[0] ?? '');
    fixture.#writeDeployment();
    return fixture;
  }

  async #listen(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#control.listen(0, '127.0.0.1', resolve);
    });
    onTestFinished(() => {
      this.#control.closeAllConnections();
      this.#control.close();
    });
  }

  async #start(side: SideName): Promise<void> {
    const nsm = this.keeper.chain.createNsm('weather', side === 'old' ? 1 : 2);
    for (const url of this.urls[side]) {
      if (this.#running.has(url)) continue;
      this.#running.set(url, await startServer({ nsm, env: { PORT: new URL(url).port } }));
    }
  }

  async #stop(side: SideName): Promise<void> {
    for (const url of this.urls[side]) {
      const server = this.#running.get(url);
      this.#running.delete(url);
      await server?.close();
    }
  }

  get running(): string[] {
    return [...this.#running.keys()];
  }

  get deployments(): string {
    return this.keeper.chain.file('deployments');
  }

  /** Returns the enclaves in the deployment file. */
  readEnclaves(): { readonly url: string }[] {
    return JSON.parse(readFileSync(`${this.deployments}/localnet.json`, 'utf8')).applications.weather
      .enclaves;
  }

  /** Writes the signer of the config's releases to the deployment file. */
  noteSigner(signer: object): void {
    this.#writeDeployment(signer);
  }

  #writeDeployment(signer?: object): void {
    const { chain, configId, capId } = this.keeper;
    const weather = {
      package: PACKAGE,
      original: PACKAGE,
      enclavePackage: PACKAGE,
      module: 'weather',
      witness: 'WEATHER',
      capability: capId,
      config: { id: configId, name: 'weather', version: 0 },
      registrars: [],
      enclaves: [],
      ...(signer && { signer }),
    };
    const id = toHex(fromBase58(chain.node.chainId).slice(0, 4));
    mkdirSync(this.deployments, { recursive: true });
    const file = { network: 'localnet', chain: id, applications: { weather } };
    writeFileSync(`${this.deployments}/localnet.json`, JSON.stringify(file));
  }

  /** Writes a plan. Returns its path. */
  plan(changes: object = {}): string {
    const { chain, operator } = this.keeper;
    const control = `http://127.0.0.1:${(this.#control.address() as AddressInfo).port}`;
    const call = (name: CommandName) => [
      [process.execPath, '--input-type=module', '-e', CALL, `${control}/${name}`],
    ];
    const plan = {
      network: 'localnet',
      node: chain.node.url,
      registrar: operator.registrar,
      root: 'root.pem',
      old: { pcrs: 'dev.pcrs', enclaves: this.urls.old },
      new: { pcrs: 'new.pcrs', enclaves: this.urls.new },
      commands: {
        start: call('start'),
        switch: call('switch'),
        switch_back: call('switch_back'),
        stop_old: call('stop_old'),
        stop_new: call('stop_new'),
      },
      overlap: 10,
      drain: 0,
      settle: 0,
      start_within: 20,
      command_within: 20,
      admin_within: 30,
      ...changes,
    };
    const path = chain.file('rollout.yaml');
    writeFileSync(path, JSON.stringify(plan));
    return path;
  }

  /** Returns the environment of the operator. */
  get env(): Record<string, string> {
    return { SUI_PRIVATE_KEY: this.keeper.operator.key.getSecretKey(), DEPLOYMENTS: this.deployments };
  }

  /** Runs a command that the rollout printed for the holder of the EnclaveCap, with that holder's key. */
  async obey(line: string): Promise<void> {
    const [, name = '', ...args] = line.trim().split(' ');
    await this.keeper.chain.done(name, ...args);
  }
}
