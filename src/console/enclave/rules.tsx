import type { RuleResult } from 'sui-enclave/attestation';
import { visibleText } from '../lib/visible_text.ts';
import { Mark } from '../parts/mark.tsx';
import { Panel } from '../parts/panel.tsx';

interface Props {
  readonly rules: readonly RuleResult[];
  /** Whether there were registers to compare with. */
  readonly isCompared: boolean;
}

/** Shows every rule with its finding, in a collapsed list. A failed rule is also shown above the list. */
export function Rules({ rules, isCompared }: Props) {
  const failed = rules.find(({ state }) => state === 'failed');
  const passed = rules.filter(({ state }) => state === 'passed').length;
  const explainedRules = rules.map((rule) =>
    rule.id === 'policy.images' && rule.state === 'passed' && !isCompared
      ? { ...rule, found: 'compared with nothing: no registers were given' }
      : rule,
  );
  return (
    <Panel title="Rules" aside={<span className="subtle">{`${passed} of ${rules.length} passed`}</span>}>
      {failed && <RuleList rules={[failed]} />}
      <details>
        <summary>{`All ${rules.length} rules`}</summary>
        <RuleList rules={explainedRules} />
      </details>
    </Panel>
  );
}

function RuleList({ rules }: { readonly rules: readonly RuleResult[] }) {
  return (
    <ol className="rules">
      {rules.map(({ rule, title, state, found: detail }) => (
        <li key={rule} value={rule}>
          <Mark state={state} label={state} />
          <span className="number">{rule}</span>
          <span>
            {visibleText(title)}
            {detail !== undefined && <span className="found">{visibleText(detail, 400)}</span>}
          </span>
        </li>
      ))}
    </ol>
  );
}
