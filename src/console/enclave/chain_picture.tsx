import type { ChainEntry } from 'sui-enclave/attestation';
import { duration, timestamp } from '../lib/times.ts';
import { visibleText } from '../lib/visible_text.ts';
import { Bytes } from '../parts/bytes.tsx';
import { Mark } from '../parts/mark.tsx';
import { Panel } from '../parts/panel.tsx';

interface Props {
  readonly chain: readonly ChainEntry[];
  readonly now: number;
  readonly rootSha256: string | undefined;
}

/** Shows the certificates from the root to the leaf, each with the remaining part of its validity. */
export function ChainPicture({ chain, now, rootSha256 }: Props) {
  return (
    <Panel
      title="Chain of certificates"
      aside={<span className="subtle">root first; the bars show the remaining time</span>}
    >
      <ol className="chain">
        {chain.map((entry, index) => (
          <Certificate
            // biome-ignore lint/suspicious/noArrayIndexKey: a certificate's place identifies it.
            key={index}
            entry={entry}
            now={now}
            role={index === 0 ? 'root' : index === chain.length - 1 ? 'enclave' : 'authority'}
          />
        ))}
      </ol>
      {rootSha256 !== undefined && (
        <div className="expected">
          <span className="subtle">SHA-256 of the root</span>
          <Bytes hex={rootSha256} name="SHA-256 of the root" />
        </div>
      )}
    </Panel>
  );
}

interface CertificateProps {
  readonly entry: ChainEntry;
  readonly now: number;
  readonly role: string;
}

function Certificate({ entry, now, role }: CertificateProps) {
  const from = entry.notBefore.getTime();
  const to = entry.notAfter.getTime();
  const state = now < from ? 'early' : now > to ? 'expired' : 'valid';
  const remainingPart = Math.min(1, Math.max(0, (to - now) / Math.max(1, to - from)));
  return (
    <li data-state={state}>
      <Mark state={state === 'valid' ? 'passed' : 'failed'} label={state} />
      <div className="certificate">
        <p>
          <strong>{readName(entry.subject)}</strong> <span className="subtle">{role}</span>
        </p>
        <div className="validity" aria-hidden="true">
          <div style={{ width: `${100 * remainingPart}%` }} />
        </div>
        <p className="hint">
          {timestamp(from)} to {timestamp(to)}: {describeRemaining(now, from, to)}
        </p>
      </div>
    </li>
  );
}

function describeRemaining(now: number, from: number, to: number): string {
  if (now > to) return `expired ${duration(now - to)} ago`;
  if (now < from) return `begins in ${duration(from - now)}`;
  return `${duration(to - now)} left`;
}

function readName(subject: string): string {
  return visibleText(/(?:^|, )CN=([^,]*)/.exec(subject)?.[1] || subject, 90);
}
