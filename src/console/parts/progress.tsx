import type { Job } from '../lib/use_job.ts';

/** Shows the present step of a job, and a button to cancel it. Between jobs, it is an empty live region. */
export function Progress({ job }: { readonly job: Job }) {
  return (
    <div className="progress" role="status">
      {job.step !== undefined && (
        <>
          <span className="spinner" aria-hidden="true" />
          <span>{job.step}</span>
          <button type="button" className="ds-button" data-variant="tertiary" onClick={job.cancel}>
            Cancel
          </button>
        </>
      )}
    </div>
  );
}
