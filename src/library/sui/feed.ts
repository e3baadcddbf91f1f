/** Reads the feeds of `move/feed`, and describes what their enclaves sign. Browser-safe. */
import { bcs } from '@mysten/sui/bcs';
import type { ClientWithCoreApi } from '@mysten/sui/client';
import { text, u8, u64 } from '../wire/bcs.ts';
import { signedType } from '../wire/intent.ts';
import { struct } from '../wire/struct.ts';
import type { AskOptions } from './ask.ts';
import { parseContent, parseObjectType, readObject } from './read_object.ts';
import { timeMs } from './structs.ts';

/** Returns the type that enclaves sign for feeds with this intent: a value, its symbol and its decimals. */
export function quoteType(intent: number) {
  return signedType(intent, struct('Quote', { symbol: text, decimals: u8, value: u64 }));
}

/** The rules of a feed, which never change: see `new_rules` of `move/feed`. Times are in milliseconds. */
export interface FeedRules {
  /** Intent of the signed quotes: see `quoteType`. Enclaves sign nothing else with it. */
  readonly intent: number;
  /** Symbol that the enclaves sign: 1 to 32 printable ASCII characters. */
  readonly symbol: string;
  /** Number of decimals of a value, at most 18. */
  readonly decimals: number;
  /** Lowest value that an update may have; at least 1. */
  readonly minValue: bigint;
  /** Highest value that an update may have. */
  readonly maxValue: bigint;
  /** Maximum age of a value that is written or read; more than the heartbeat. */
  readonly maxAgeMs: bigint;
  /** Minimum time between two updates. */
  readonly minIntervalMs: bigint;
  /** Minimum move of an update before the heartbeat is over, in hundredths of a percent of the last value. */
  readonly minMoveBps: bigint;
  /** Time since the last update after which the next needs no minimum move; at least `minIntervalMs`. */
  readonly heartbeatMs: bigint;
  /** Number of configs from which an update needs values. */
  readonly threshold: bigint;
  /** Ids of the configs whose enclaves may sign: 1 to 16, each once. */
  readonly configIds: readonly string[];
}

/** A value that an enclave signed. */
export interface SignedValue {
  /** The config of the enclave. */
  readonly configId: string;
  /** The version of the config at which the enclave was registered. */
  readonly configVersion: bigint;
  /** Id of the enclave, which may be destroyed by now. */
  readonly enclaveId: string;
  /** The value that the enclave signed, with the decimals of the rules. */
  readonly value: bigint;
  /** Time of the oldest source of the value, in milliseconds since the Unix epoch. */
  readonly timestampMs: bigint;
}

/** The last update of a feed: the median, and the time of the oldest value. */
export interface FeedUpdate {
  /** Median of the signed values. */
  readonly value: bigint;
  /** Time of the oldest signed value, in milliseconds since the Unix epoch. */
  readonly timestampMs: bigint;
  /** All values of the update. */
  readonly signed: readonly SignedValue[];
}

/** A feed on chain. */
export interface Feed {
  /** Object id of the feed. */
  readonly id: string;
  /** Id of the package version that introduced the type `feed::feed::Feed`. */
  readonly feedPackage: string;
  /** The type `T` of the application that the feed is for. */
  readonly application: string;
  /** Rules that each update must follow. */
  readonly rules: FeedRules;
  /** The last update, of any age; null before the first. */
  readonly last: FeedUpdate | null;
}

const FeedContent = bcs.struct('Feed', {
  id: bcs.Address,
  rules: bcs.struct('Rules', {
    intent: bcs.u8(),
    symbol: bcs.string(),
    decimals: bcs.u8(),
    minValue: u64,
    maxValue: u64,
    maxAgeMs: u64,
    minIntervalMs: u64,
    minMoveBps: u64,
    heartbeatMs: u64,
    threshold: u64,
    configIds: bcs.vector(bcs.Address),
  }),
  last: bcs.option(
    bcs.struct('Update', {
      value: u64,
      timestampMs: timeMs,
      signed: bcs.vector(
        bcs.struct('SignedValue', {
          configId: bcs.Address,
          configVersion: u64,
          enclaveId: bcs.Address,
          value: u64,
          timestampMs: timeMs,
        }),
      ),
    }),
  ),
});

/**
 * Reads a feed by its object id, as the node reports it. Compare `last.timestampMs` with the current time:
 * contracts read no value that is older than `rules.maxAgeMs`.
 *
 * @throws SuiError as `readConfig` does
 */
export async function readFeed(
  client: ClientWithCoreApi,
  feedId: string,
  options: AskOptions = {},
): Promise<Feed> {
  const object = await readObject(client, 'feed', feedId, options);
  const { packageId, application } = parseObjectType(object, 'feed', 'Feed');
  const { rules, last } = parseContent(FeedContent, object);
  return { id: object.objectId, feedPackage: packageId, application, rules, last };
}
