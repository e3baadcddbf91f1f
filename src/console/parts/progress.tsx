import type { Job } from '../lib/use_job.ts';

/** What a job does now, and the way to end it; an empty place that is announced, when there is none. */
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
