/** Asks the enclave, and shows the signed answer, or the reason why there is none. */
import { type FormEvent, useState } from 'react';
import type { EnclaveClient } from 'sui-enclave/client';
import type { UsedEnclave } from 'sui-enclave/react';
import { TroubleNote } from '../parts/trouble_note.tsx';
import { enclaveTrouble } from '../trouble.ts';
import type { UsedReading } from './use_reading.ts';
import { celsius, type Precision } from './weather.ts';

interface Props {
  readonly reading: UsedReading;
  readonly enclave: UsedEnclave<EnclaveClient>;
  readonly url: string;
}

export function ReadingPanel({ reading, enclave, url }: Props) {
  const [location, setLocation] = useState('San Francisco');
  const [precision, setPrecision] = useState<Precision>('tenths');
  const isReady = enclave.status === 'attested' && reading.status !== 'asking' && location.trim() !== '';
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isReady) reading.ask(location.trim(), precision);
  };
  return (
    <section id="reading" className="panel" aria-labelledby="reading-title">
      <h2 id="reading-title">A signed reading</h2>
      <form onSubmit={submit}>
        <label className="field">
          Place
          <input
            name="location"
            value={location}
            maxLength={100}
            required
            autoComplete="off"
            onChange={(event) => setLocation(event.target.value)}
          />
        </label>
        <fieldset className="choice">
          <legend>Precision</legend>
          <Choice name="tenths" precision={precision} setPrecision={setPrecision}>
            Tenths
          </Choice>
          <Choice name="degrees" precision={precision} setPrecision={setPrecision}>
            Whole degrees
          </Choice>
        </fieldset>
        <button type="submit" className="primary" disabled={!isReady}>
          {reading.status === 'asking' ? 'Asking …' : 'Ask the enclave'}
        </button>
      </form>
      {precision === 'degrees' && (
        <p className="subtle">Readings in whole degrees can’t be below 0 °C: in winter, choose tenths.</p>
      )}
      <div aria-live="polite">
        {reading.status === 'answered' && <Answer {...reading} />}
        {reading.status === 'none' && enclave.status !== 'failed' && (
          <p className="empty">
            {enclave.status === 'attesting' ? 'Attesting the enclave …' : 'Nothing asked yet.'}
          </p>
        )}
      </div>
      {enclave.status === 'failed' && (
        <TroubleNote trouble={enclaveTrouble(enclave.error, url)} action={['Attest again', enclave.retry]} />
      )}
      {enclave.status === 'attested' && reading.status === 'failed' && (
        <TroubleNote trouble={enclaveTrouble(reading.error, url)} />
      )}
    </section>
  );
}

interface ChoiceProps {
  readonly name: Precision;
  readonly precision: Precision;
  readonly setPrecision: (precision: Precision) => void;
  readonly children: string;
}

function Choice({ name, precision, setPrecision, children }: ChoiceProps) {
  return (
    <label>
      <input
        type="radio"
        name="precision"
        value={name}
        checked={precision === name}
        onChange={() => setPrecision(name)}
      />
      {children}
    </label>
  );
}

function Answer({ reading }: Extract<UsedReading, { status: 'answered' }>) {
  const { data, timestampMs } = reading.answer;
  return (
    <div className="answer">
      <p className="degrees">{celsius(reading)}</p>
      <p>
        <strong>{data.location}</strong>
        <br />
        <span className="subtle">measured {timeText(Number(timestampMs))}</span>
      </p>
    </div>
  );
}

export function timeText(timeMs: number): string {
  return new Date(timeMs).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' });
}
