import { Component, type ReactNode } from 'react';
import { visibleText } from '../lib/visible_text.ts';
import { Verdict } from './verdict.tsx';

/** What remains of a view that failed: words, and the way on. A chunk that can't be loaded ends here too. */
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
        <p>Nothing above it was verified. Load the page again to go on.</p>
      </Verdict>
    );
  }
}
