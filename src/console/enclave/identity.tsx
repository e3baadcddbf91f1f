import { type AttestationDocument, readUserData } from 'sui-enclave/attestation';
import { toHex } from '../lib/bytes.ts';
import { duration, timestamp } from '../lib/times.ts';
import { visibleText } from '../lib/visible_text.ts';
import { Bytes } from '../parts/bytes.tsx';
import { Facts } from '../parts/facts.tsx';
import { Panel } from '../parts/panel.tsx';
import { Tag } from '../parts/tag.tsx';

interface Props {
  readonly document: AttestationDocument;
  readonly now: number;
  /** Trust in the document. `genuine`: it is valid, but the policy refused it. */
  readonly trust: 'verified' | 'genuine' | 'none';
}

/** Shows the document's claims about the enclave. */
export function Identity({ document, now, trust }: Props) {
  const userData = readUserDataOrNull(document);
  const { publicKey } = document;
  return (
    <Panel
      title="The enclave"
      aside={
        trust === 'verified' ? (
          <Tag tone="success">attested</Tag>
        ) : trust === 'genuine' ? (
          <Tag tone="warning">attested, but not accepted</Tag>
        ) : (
          <Tag tone="danger">only claimed: the document is not trusted</Tag>
        )
      }
    >
      <Facts
        rows={[
          [
            'Application',
            userData ? `${visibleText(userData.application)} ${visibleText(userData.version)}` : 'not named',
          ],
          ['Module', <code key="module">{visibleText(document.moduleId, 120)}</code>],
          ['Made', `${timestamp(document.timestamp)}, ${formatAge(document.timestamp, now)}`],
          ['Signing key', publicKey ? <Bytes key="key" hex={toHex(publicKey)} name="signing key" /> : 'none'],
          [
            'Sealing key',
            userData ? <Bytes key="seal" hex={toHex(userData.sealingKey)} name="sealing key" /> : 'none',
          ],
        ]}
      />
    </Panel>
  );
}

function formatAge(at: number, now: number): string {
  return at > now ? `${duration(at - now)} ahead of this clock` : `${duration(now - at)} ago`;
}

function readUserDataOrNull(document: AttestationDocument) {
  try {
    return readUserData(document);
  } catch {
    // A document of another program has other user data, or none.
    return undefined;
  }
}
