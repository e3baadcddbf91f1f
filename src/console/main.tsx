/**
 * The console: a page that attests enclaves, calls them, and reads their configs on Sui. It needs no wallet.
 */
import { createRoot } from 'react-dom/client';
import { App } from './app.tsx';

const root = document.querySelector('#root');
if (root) createRoot(root).render(<App />);
