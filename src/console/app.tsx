import { lazy, Suspense } from 'react';
import { EnclaveView } from './enclave/view.tsx';
import { linkTo, VIEWS, type View } from './lib/route.ts';
import { useRoute } from './lib/use_route.ts';
import { Failure } from './parts/failure.tsx';

const CallView = lazy(() => import('./call/view.tsx'));
/** This view is loaded on demand, since it loads the Sui client, which no other view needs. */
const ChainView = lazy(() => import('./chain/view.tsx'));

const NAMES: Readonly<Record<View, string>> = { enclave: 'Enclave', call: 'Call', chain: 'Chain' };

export function App() {
  const { view, fields, visit } = useRoute();
  return (
    <>
      <title>{`${NAMES[view]} · sui-enclave console`}</title>
      <button type="button" className="skip" onClick={skip}>
        Skip to the content
      </button>
      <header className="bar">
        <a className="brand" href={linkTo('enclave', fields)}>
          <img src={icon} alt="" width="24" height="24" />
          sui-enclave <span className="subtle">console</span>
        </a>
        <nav aria-label="Views">
          {VIEWS.map((name) => (
            <a key={name} href={linkTo(name, fields)} aria-current={name === view ? 'page' : undefined}>
              {NAMES[name]}
            </a>
          ))}
        </nav>
      </header>
      <main id="content" tabIndex={-1}>
        <Failure key={visit}>
          <Suspense fallback={<p className="subtle">Loading…</p>}>
            {view === 'enclave' && <EnclaveView fields={fields} />}
            {view === 'call' && <CallView fields={fields} />}
            {view === 'chain' && <ChainView fields={fields} />}
          </Suspense>
        </Failure>
      </main>
      <footer className="foot">
        Everything is verified in this page, and the page signs nothing. It sends a request to an enclave or a
        Sui node only when you click, and only to the host that the button names.
      </footer>
    </>
  );
}

const icon = new URL('./icon.svg', import.meta.url).href;

/** Moves the focus to the content. A link can't do that, since the fragment of the address names the view. */
function skip(): void {
  document.querySelector<HTMLElement>('#content')?.focus();
}
