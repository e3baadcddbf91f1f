import { toHex } from '../lib/bytes.ts';
import { timestamp } from '../lib/times.ts';
import { visibleText } from '../lib/visible_text.ts';
import { Bytes } from '../parts/bytes.tsx';
import { Facts } from '../parts/facts.tsx';
import { Panel } from '../parts/panel.tsx';
import { Verdict } from '../parts/verdict.tsx';
import type { CallOutcome } from './call.ts';
import { judgeCall } from './judge_call.ts';
import { MoveCall } from './move_call.tsx';
import { SignedBytes } from './signed_bytes.tsx';
import { Traffic } from './traffic.tsx';

interface Props {
  readonly outcome: CallOutcome;
  readonly difference: string | undefined;
}

/** Shows the verdict on a call in one sentence. */
export function CallVerdict({ outcome, difference }: Props) {
  const { tone, title, text, code } = judgeCall(outcome, difference);
  return (
    <Verdict tone={tone} title={title} code={code}>
      <p>{text}</p>
    </Verdict>
  );
}

/** Shows the basis of the verdict: bytes, signature, the Move call, and the part that the host saw. */
export function CallReport({ outcome }: Pick<Props, 'outcome'>) {
  const { verification, request, traffic } = outcome;
  return (
    <>
      {'answer' in verification && (
        <>
          <Panel title="Answer">
            <Facts
              rows={[
                ['Dated', timestamp(Number(verification.answer.timestampMs))],
                ...verification.fields
                  .filter(({ path }) => path.startsWith('payload.'))
                  .slice(0, 50)
                  .map(({ path, value }): [string, string] => [
                    visibleText(path.slice('payload.'.length), 80),
                    visibleText(value, 300),
                  ]),
              ]}
            />
          </Panel>
          <SignedBytes bytes={verification.bytes} fields={verification.fields} />
          <Panel title="Signature">
            <Facts
              rows={[
                ['Ed25519', <Bytes key="s" hex={toHex(verification.answer.signature)} name="signature" />],
                ['Verifies under', <Bytes key="k" hex={toHex(verification.answer.publicKey)} name="key" />],
              ]}
            />
          </Panel>
          <MoveCall
            type={request.type}
            fields={verification.fields}
            signature={verification.answer.signature}
          />
        </>
      )}
      <Traffic requests={traffic} isSealed={request.isSealed} />
    </>
  );
}
