import { Component, type ReactNode } from 'react';
import { visibleText } from '../lib/visible_text.ts';
import { Verdict } from './verdict.tsx';

/** Replaces a view that failed, or whose code can't be loaded, by an explanation and a remedy. */
export class Failure extends Component<
  { readonly children: ReactNode },
  { readonly error: unknown; readonly failed: boolean }
> {
  override state = { error: undefined, failed: false };

  static getDerivedStateFromError(error: unknown) {
    return { error, failed: true };
  }

  override render() {
    if (!this.state.failed) return this.props.children;
    const error: unknown = this.state.error;
    return (
      <Verdict tone="danger" title="This view has failed">
        <p>{visibleText(error instanceof Error ? error.message : String(error))}</p>
        <p>Nothing was verified here. Load the page again to continue.</p>
      </Verdict>
    );
  }
}
