import { type FormEvent, useEffect, useRef, useState } from 'react';
import type { AppSchema, SchemaEndpoint } from 'sui-enclave/client';
import type { Expectation } from '../enclave/examine.ts';
import { useJob } from '../lib/use_job.ts';
import { visibleText } from '../lib/visible_text.ts';
import { Collapsible } from '../parts/collapsible.tsx';
import { Panel } from '../parts/panel.tsx';
import { Progress } from '../parts/progress.tsx';
import { SelectField } from '../parts/select_field.tsx';
import { Tag } from '../parts/tag.tsx';
import { Verdict } from '../parts/verdict.tsx';
import { type CallOutcome, callEnclave } from './call.ts';
import { CallReport, CallVerdict } from './call_report.tsx';
import { InputField } from './input_field.tsx';
import { buildBody, buildQuery, formatKey, listFields, type Values } from './schema_form.ts';
import { type Comparison, StructFields } from './struct_fields.tsx';

interface Props {
  readonly schema: AppSchema;
  readonly base: URL;
  /** Address of the node in its field. */
  readonly node: string;
  readonly expectation: Expectation;
}

const formatName = ({ method, path }: SchemaEndpoint) => `${method} ${path}`;

/** Shows the form of an application, as its host describes it, and the result of a call. */
export function CallPanel({ schema, base, node, expectation }: Props) {
  const { endpoints, signs, inputs } = schema;
  const [name, setName] = useState(endpoints[0] ? formatName(endpoints[0]) : '');
  const [typeName, setTypeName] = useState(signs[0]?.name ?? '');
  const [values, setValues] = useState<Values>({});
  const [isSealed, setSealed] = useState(false);
  const [invalidField, setInvalidField] = useState<{ readonly key: string; readonly problem: string }>();
  const [comparison, setComparison] = useState<Comparison>();
  const [outcome, setOutcome] = useState<CallOutcome>();
  const [failure, setFailure] = useState<string>();
  const [isOpen, setOpen] = useState(true);
  const verdict = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (outcome !== undefined || failure !== undefined) verdict.current?.scrollIntoView();
  }, [outcome, failure]);
  const job = useJob((error) =>
    setFailure(error instanceof Error ? error.message : 'It failed for an unknown reason.'),
  );
  const endpoint = endpoints.find((candidate) => formatName(candidate) === name);
  const type = signs.find((candidate) => candidate.name === typeName);
  const input = Object.hasOwn(inputs, name) ? inputs[name] : undefined;
  const fields = input === undefined ? [] : listFields(input);

  if (!endpoint || !type) {
    return (
      <Panel title="Nothing to call" aside={<Tag tone="warning">as told by the host</Tag>}>
        <p className="subtle">This application has no endpoint whose answers it signs.</p>
      </Panel>
    );
  }

  /** Chooses a type and clears the verdict, which belongs to an answer of the former type. */
  const chooseType = (newTypeName: string) => {
    setTypeName(newTypeName);
    job.cancel();
    setOutcome(undefined);
    setFailure(undefined);
  };

  const call = (event: FormEvent) => {
    event.preventDefault();
    const bodyOrProblem = buildBody(fields, values);
    setInvalidField(
      'problem' in bodyOrProblem
        ? { key: formatKey(bodyOrProblem.field), problem: bodyOrProblem.problem }
        : undefined,
    );
    if ('problem' in bodyOrProblem) return;
    setOutcome(undefined);
    setFailure(undefined);
    const isPost = endpoint.method === 'POST';
    const path = isPost ? endpoint.path : `${endpoint.path}${buildQuery(bodyOrProblem.body)}`;
    const body = isPost ? bodyOrProblem.body : undefined;
    job.start(async ({ signal, step }) => {
      step(`Attesting and calling ${base.host}`);
      const newOutcome = await callEnclave(
        { base, endpoint: { ...endpoint, path }, type, body, isSealed, expectation },
        signal,
      );
      setOutcome(newOutcome);
      setOpen(false);
    });
  };

  return (
    <>
      <Collapsible summary={`Form of ${visibleText(base.host, 60)}`} isOpen={isOpen} onToggle={setOpen}>
        <form className="stack" onSubmit={call}>
          <div className="register">
            <Tag tone="warning">as told by the host</Tag>
            <span className="hint">This form is not signed. Compare the type with the contract below.</span>
          </div>
          <div className="pair even">
            <SelectField
              label="Endpoint"
              value={name}
              onChange={setName}
              options={endpoints.map(formatName)}
            />
            <SelectField
              label="Signed type"
              value={typeName}
              onChange={chooseType}
              options={signs.map((signedType) => signedType.name)}
            />
          </div>
          {fields.map((field) => (
            <InputField
              key={formatKey(field)}
              field={field}
              value={values[formatKey(field)] ?? ''}
              problem={invalidField?.key === formatKey(field) ? invalidField.problem : undefined}
              onChange={(value) => setValues({ ...values, [formatKey(field)]: value })}
            />
          ))}
          <label className="check">
            <input type="checkbox" checked={isSealed} onChange={(event) => setSealed(event.target.checked)} />
            <span>Seal the request to the attested enclave: the host then sees only sizes</span>
          </label>
          <div className="buttons">
            <button type="submit" className="ds-button">
              {`Call ${visibleText(base.host, 60)}`}
            </button>
          </div>
        </form>
        <Progress job={job} />
      </Collapsible>
      <StructFields type={type} node={node} comparison={comparison} onCompared={setComparison} />
      <div ref={verdict} role="status" className="view">
        {failure !== undefined && (
          <Verdict tone="danger" title="The call failed in this page">
            <p>{visibleText(failure, 400)}</p>
          </Verdict>
        )}
        {outcome && (
          <CallVerdict
            outcome={outcome}
            difference={comparison?.typeName === type.name ? comparison.difference : undefined}
          />
        )}
      </div>
      {outcome && <CallReport outcome={outcome} />}
    </>
  );
}
