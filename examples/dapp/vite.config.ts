import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

/**
 * The page may load code, styles and frames only from its own origin: any script in it could use the user's
 * zkLogin session. In connect-src, replace the origins by those of your enclave, node and services.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  // Wallets provide their icons as data URLs.
  "img-src 'self' data:",
  'connect-src http: https:',
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

/** Adds the policy to built pages. The pages of the development server have scripts from Vite. */
const policyInPages: Plugin = {
  name: 'policy-in-pages',
  apply: 'build',
  transformIndexHtml: () => [
    {
      tag: 'meta',
      attrs: { 'http-equiv': 'Content-Security-Policy', content: POLICY },
      injectTo: 'head-prepend',
    },
  ],
};

export default defineConfig({
  plugins: [react(), policyInPages],
  // The base is relative, so that the page can be served below any path.
  base: './',
  server: { host: '127.0.0.1' },
  build: {
    target: 'es2022',
    // Inlined files would be data URLs, and the polyfill would be an inline script.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Poseidon's constants, which zkLogin needs, take half of this size.
    chunkSizeWarningLimit: 1500,
    rolldownOptions: { input: { index: 'index.html', login: 'login.html' } },
  },
});
