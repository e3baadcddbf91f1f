/**
 * State of a rule, a step or a verdict. The mark has a shape besides a colour, for people who can't
 * distinguish colours.
 */
export type State = 'passed' | 'failed' | 'warning' | 'not reached';

const PATHS: Readonly<Record<State, string>> = {
  passed: 'M4 8.5l2.7 2.7L12 5.6',
  failed: 'M5 5l6 6M11 5l-6 6',
  warning: 'M8 4v5M8 11.6v.1',
  'not reached': 'M5 8h6',
};

/** @param label text for screen readers. Without a label, the text beside the mark says the same */
export function Mark({ state, label }: { readonly state: State; readonly label?: string }) {
  return (
    <>
      <svg className="mark" data-state={state} viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
        <circle cx="8" cy="8" r="8" />
        <path d={PATHS[state]} />
      </svg>
      {label !== undefined && <span className="hidden">{label}</span>}
    </>
  );
}
