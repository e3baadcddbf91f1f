/**
 * A wallet's page with a login by zkLogin, step by step, and the transactions that its session can sign.
 * `make dev-wallet` serves it.
 */
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app.tsx';

const root = document.querySelector('#root');
if (root) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
