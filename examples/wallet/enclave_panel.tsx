/**
 * Mints an object from an enclave's answer. This page verifies the answer, and the contract verifies it
 * again.
 */
import { bcs } from '@mysten/sui/bcs';
import { Transaction } from '@mysten/sui/transactions';
import { useState } from 'react';
import { certificatesFromPem, EnclaveClient, signedType, text, u64 } from 'sui-enclave/client';
import { signedArguments } from 'sui-enclave/sui';
import type { ZkLoginSession } from 'sui-enclave/zklogin';
import { timestamp } from '../../src/console/lib/times.ts';
import { useJob } from '../../src/console/lib/use_job.ts';
import { visibleText } from '../../src/console/lib/visible_text.ts';
import { Bytes } from '../../src/console/parts/bytes.tsx';
import { Facts } from '../../src/console/parts/facts.tsx';
import { Panel } from '../../src/console/parts/panel.tsx';
import { Progress } from '../../src/console/parts/progress.tsx';
import { TextField } from '../../src/console/parts/text_field.tsx';
import { ignoreHeldEnter } from './held_keys.ts';
import { client, settings } from './surroundings.ts';
import type { Balance } from './use_balance.ts';
import type { Executed, Failures, Sender } from './wallet_view.tsx';

const { enclave } = settings;
const WeatherResponse = signedType(0, bcs.struct('WeatherResponse', { location: text, temperature: u64 }));
/** The object's fields, as `move/weather` declares them. */
const WeatherNFT = bcs.struct('WeatherNFT', {
  id: bcs.Address,
  location: text,
  temperature: u64,
  timestamp_ms: u64,
});

async function ask(location: string, signal: AbortSignal) {
  if (enclave === null) throw new Error('there is no enclave');
  const { url, configId, rootPem } = enclave;
  const roots = certificatesFromPem(rootPem);
  const question = { location };
  const enclaveClient = await EnclaveClient.forConfig(client, configId, url, { roots, signal });
  return await enclaveClient.processData(question, WeatherResponse, { expect: question, signal });
}

type Reading = Awaited<ReturnType<typeof ask>>;
type Minted = ReturnType<typeof WeatherNFT.parse>;

/** Adds the call that mints the reading. */
function mintCall(tx: Transaction, reading: Reading, { packageId, configId }: NonNullable<typeof enclave>) {
  const { data, timestampMs, signature } = signedArguments(tx, reading, WeatherResponse);
  return tx.moveCall({
    target: `${packageId}::weather::update_weather`,
    arguments: [
      data.location,
      data.temperature,
      timestampMs,
      signature,
      tx.object(reading.enclaveId),
      tx.object(configId),
      tx.object.clock(),
    ],
  });
}

/** Returns the object that a transaction has created. */
async function mintedBy({ effects }: Executed): Promise<Minted | undefined> {
  for (const { objectId, idOperation } of effects.changedObjects) {
    if (idOperation !== 'Created') continue;
    const { object } = await client.core.getObject({ objectId, include: { content: true } });
    if (object.type.endsWith('::weather::WeatherNFT')) return WeatherNFT.parse(object.content);
  }
  return undefined;
}

interface Props {
  readonly session: ZkLoginSession;
  readonly sender: Sender;
  readonly balance: Balance;
  readonly failures: Failures;
}

export function EnclavePanel({ session, sender, balance, failures }: Props) {
  const [location, setLocation] = useState('San Francisco');
  const [reading, setReading] = useState<Reading>();
  const [minted, setMinted] = useState<Minted>();
  const job = useJob((error) => failures.add('The enclave’s answer can’t be used', error));
  const place = location.trim();
  const isReady = enclave !== null && place !== '' && job.step === undefined && !sender.isBusy;
  const begin = () => {
    failures.clear();
    setReading(undefined);
    setMinted(undefined);
    job.start(async ({ signal, step }) => {
      step('Attesting and asking the enclave');
      setReading(await ask(place, signal));
    });
  };
  const mint = () => {
    if (enclave === null || reading === undefined) return;
    const transaction = new Transaction();
    transaction.transferObjects([mintCall(transaction, reading, enclave)], session.address);
    sender.send(
      `Mint the weather in ${visibleText(reading.data.location, 40)}`,
      transaction,
      async (executed) => setMinted(await mintedBy(executed)),
    );
  };
  return (
    <Panel
      title="Ask the enclave"
      aside={enclave !== null && <span className="subtle">{new URL(enclave.url).host}</span>}
    >
      <div className="stack">
        <form
          className="asking"
          onSubmit={(event) => {
            event.preventDefault();
            if (isReady) begin();
          }}
        >
          <TextField label="Weather in" value={location} onChange={setLocation} disabled={enclave === null} />
          <button type="submit" className="ds-button" disabled={!isReady}>
            Ask
          </button>
        </form>
        {enclave === null && (
          <p className="hint">
            No enclave is running here: <code>make play</code> starts this wallet together with an enclave.
          </p>
        )}
        <Progress job={job} />
        {reading !== undefined && (
          <>
            <Facts
              rows={[
                ['Signed', `${reading.data.temperature} °C in ${visibleText(reading.data.location)}`],
                ['At', timestamp(Number(reading.timestampMs))],
                ['By', <Bytes key="by" hex={reading.enclaveId} name="the id of the enclave" />],
              ]}
            />
            <button
              type="button"
              className="ds-button"
              disabled={sender.isBusy || !balance.mist || minted !== undefined}
              onKeyDown={ignoreHeldEnter}
              onClick={mint}
            >
              Mint it
            </button>
            {balance.mist === 0n && <p className="hint">Get SUI first: minting costs gas.</p>}
          </>
        )}
        <div role="status">
          {minted !== undefined && (
            <Facts
              rows={[
                ['Minted', 'a WeatherNFT, which is yours: the contract has verified the signature'],
                ['Object', <Bytes key="object" hex={minted.id} name="the id of the object" />],
                ['Holds', `${minted.temperature} °C in ${visibleText(minted.location)}`],
              ]}
            />
          )}
        </div>
      </div>
    </Panel>
  );
}
