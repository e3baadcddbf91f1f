/** Reads the run of a GitHub workflow in which a release is signed without a key. */
import * as v from 'valibot';
import type { Environment } from '../command.ts';
import { ReleaseCommandError } from './errors.ts';

const text = v.pipe(v.string(), v.regex(/^[!-~]{1,300}$/));
const digits = v.pipe(v.string(), v.regex(/^[0-9]{1,19}$/));

/** The variables that GitHub sets in each step: its documentation, "Default environment variables". */
const Variables = v.object({
  GITHUB_SERVER_URL: v.pipe(text, v.startsWith('https://')),
  GITHUB_REPOSITORY: text,
  GITHUB_REPOSITORY_ID: digits,
  GITHUB_REPOSITORY_OWNER_ID: digits,
  GITHUB_WORKFLOW_REF: v.pipe(text, v.regex(/^[^@]+@refs\/tags\/[^@]+$/)),
  GITHUB_REF: text,
  GITHUB_EVENT_NAME: text,
  GITHUB_RUN_ID: digits,
  GITHUB_RUN_ATTEMPT: digits,
  // Set only for a run with the permission to get a token.
  ACTIONS_ID_TOKEN_REQUEST_URL: v.pipe(v.string(), v.url()),
  ACTIONS_ID_TOKEN_REQUEST_TOKEN: v.pipe(v.string(), v.nonEmpty()),
});

/** The properties of a run that its provenance names. */
export interface WorkflowRun {
  readonly repository: string;
  readonly ref: string;
  /** Path of the workflow in the repository. */
  readonly workflow: string;
  /** Address of the workflow at its ref, by which Fulcio names it too. */
  readonly builder: string;
  readonly event: string;
  readonly repositoryId: string;
  readonly ownerId: string;
  /** Address of this attempt of the run. */
  readonly invocation: string;
}

/** @throws ReleaseCommandError: NOT_IN_WORKFLOW */
export function readRun(env: Environment): WorkflowRun {
  const parsed = v.safeParse(Variables, env);
  if (!parsed.success) {
    const [issue] = parsed.issues;
    throw new ReleaseCommandError(
      'NOT_IN_WORKFLOW',
      `without --key, only a run of a GitHub workflow signs, on a tag and with the permission "id-token: write": ${v.getDotPath(issue)} is missing, or of another form`,
    );
  }
  const variables = parsed.output;
  const repository = `${variables.GITHUB_SERVER_URL}/${variables.GITHUB_REPOSITORY}`;
  const [path = ''] = variables.GITHUB_WORKFLOW_REF.split('@');
  return {
    repository,
    ref: variables.GITHUB_REF,
    workflow: path.slice(variables.GITHUB_REPOSITORY.length + 1),
    builder: `${variables.GITHUB_SERVER_URL}/${variables.GITHUB_WORKFLOW_REF}`,
    event: variables.GITHUB_EVENT_NAME,
    repositoryId: variables.GITHUB_REPOSITORY_ID,
    ownerId: variables.GITHUB_REPOSITORY_OWNER_ID,
    invocation: `${repository}/actions/runs/${variables.GITHUB_RUN_ID}/attempts/${variables.GITHUB_RUN_ATTEMPT}`,
  };
}
