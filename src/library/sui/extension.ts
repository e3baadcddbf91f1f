/** The readers and builders as an extension of a client of `@mysten/sui`. Browser-safe. */
import type { ClientWithCoreApi } from '@mysten/sui/client';
import type { Transaction } from '@mysten/sui/transactions';
import type { AskOptions } from './ask.ts';
import {
  type EnclaveEvent,
  type EnclaveEventName,
  type EventPage,
  type EventQuery,
  iterateEvents,
  readEvents,
} from './events.ts';
import { type Feed, readFeed } from './feed.ts';
import * as feeds from './feed_calls.ts';
import * as objects from './objects.ts';
import { readApplicationType } from './packages.ts';
import * as transactions from './transactions.ts';

type Builders = typeof transactions & typeof feeds;

/** Each builder without its first parameter, the transaction, which `tx.add` passes. */
export type EnclaveCalls = {
  readonly [Name in keyof Builders]: (
    call: Parameters<Builders[Name]>[1],
  ) => (tx: Transaction) => ReturnType<Builders[Name]>;
};

/** The methods that `suiEnclave()` adds to a client. */
export class SuiEnclaveExtension {
  readonly #client: ClientWithCoreApi;
  /** The builders: `tx.add(client.suiEnclave.call.updatePcrs({ … }))`. */
  readonly call: EnclaveCalls = createCalls({ ...transactions, ...feeds });

  constructor(client: ClientWithCoreApi) {
    this.#client = client;
  }

  /** Reads a config by its object id: see the function of the same name. */
  readConfig(configId: string, options?: AskOptions): Promise<objects.EnclaveConfig> {
    return objects.readConfig(this.#client, configId, options);
  }

  /** Reads an enclave by its object id: see the function of the same name. */
  readEnclave(enclaveId: string, options?: AskOptions): Promise<objects.Enclave> {
    return objects.readEnclave(this.#client, enclaveId, options);
  }

  /** Reads a registrar by its object id: see the function of the same name. */
  readRegistrar(registrarId: string, options?: AskOptions): Promise<objects.Registrar> {
    return objects.readRegistrar(this.#client, registrarId, options);
  }

  /** Reads a feed by its object id: see the function of the same name. */
  readFeed(feedId: string, options?: AskOptions): Promise<Feed> {
    return readFeed(this.#client, feedId, options);
  }

  /** Finds out whether a key is registered: see the function of the same name. */
  findRegistration(
    config: objects.EnclaveConfig,
    publicKey: Uint8Array,
    options?: objects.RegistrationOptions,
  ): Promise<objects.Registration> {
    return objects.findRegistration(this.#client, config, publicKey, options);
  }

  /** Lists the enclaves of a config: see the function of the same name. */
  listEnclaves(config: objects.EnclaveConfig, options?: objects.ListOptions): Promise<objects.EnclaveList> {
    return objects.listEnclaves(this.#client, config, options);
  }

  /** Lists the capabilities of an address: see the function of the same name. */
  listCapabilities(owner: string, contract: objects.Contract, options?: AskOptions): Promise<string[]> {
    return objects.listCapabilities(this.#client, owner, contract, options);
  }

  /** Reads the type of an application: see the function of the same name. */
  readApplicationType(
    appPackage: string,
    moduleName: string,
    witness: string,
    options?: AskOptions,
  ): Promise<string> {
    return readApplicationType(this.#client, appPackage, moduleName, witness, options);
  }

  /** Reads a page of events: see the function of the same name. */
  readEvents<Name extends EnclaveEventName = EnclaveEventName>(
    query: EventQuery<Name>,
  ): Promise<EventPage<Name>> {
    return readEvents(this.#client, query);
  }

  /** Iterates over all events: see the function of the same name. */
  iterateEvents<Name extends EnclaveEventName = EnclaveEventName>(
    query: EventQuery<Name>,
  ): AsyncGenerator<EnclaveEvent<Name>, void, undefined> {
    return iterateEvents(this.#client, query);
  }
}

type Build = (tx: Transaction, call: never) => unknown;

function createCalls(builders: Readonly<Record<string, Build>>): EnclaveCalls {
  const calls = Object.entries(builders).map(
    ([name, build]) => [name, (call: never) => (tx: Transaction) => build(tx, call)] as const,
  );
  return Object.fromEntries(calls) as EnclaveCalls;
}

/**
 * Returns an extension that adds the readers to a client of `@mysten/sui`, and the builders under `call`.
 *
 * @example
 * const client = new SuiGrpcClient({ network: 'testnet', baseUrl }).$extend(suiEnclave());
 * const config = await client.suiEnclave.readConfig(configId);
 * tx.add(client.suiEnclave.call.updatePcrs({ enclavePackage, application, configId, capId, image }));
 */
export function suiEnclave<const Name extends string = 'suiEnclave'>({
  name = 'suiEnclave' as Name,
}: {
  /** Name of the client's new property. Default: `suiEnclave`. */
  readonly name?: Name;
} = {}) {
  return { name, register: (client: ClientWithCoreApi) => new SuiEnclaveExtension(client) };
}
