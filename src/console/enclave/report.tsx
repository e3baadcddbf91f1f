import { visibleText } from '../lib/visible_text.ts';
import { Verdict } from '../parts/verdict.tsx';
import { ChainPicture } from './chain_picture.tsx';
import type { Examination } from './examine.ts';
import { Identity } from './identity.tsx';
import { isGenuine, judge } from './judge.ts';
import { Registers } from './registers.tsx';
import { Rules } from './rules.tsx';

/** Shows the verdict on the document in one sentence. */
export function ExaminationVerdict({ examination }: { readonly examination: Examination }) {
  const { tone, title, text, code } = judge(examination);
  return (
    <Verdict tone={tone} title={title} code={code}>
      <p>{text}</p>
      <p className="subtle">From {visibleText(examination.subject.from, 80)}.</p>
    </Verdict>
  );
}

/** Shows the basis of the verdict. */
export function Report({ examination }: { readonly examination: Examination }) {
  const { explanation, now } = examination;
  const { document, chain, verified } = explanation;
  return (
    <>
      {document && <Registers examination={examination} document={document} />}
      {chain && <ChainPicture chain={chain} now={now} rootSha256={verified?.rootSha256} />}
      {document && (
        <Identity
          document={document}
          now={now}
          trust={verified ? 'verified' : isGenuine(examination) ? 'genuine' : 'none'}
        />
      )}
      <Rules rules={explanation.rules} isCompared={examination.expectation.images.length > 0} />
    </>
  );
}
