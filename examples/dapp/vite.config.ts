import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

/**
 * The page gets no code, style or frame but its own: any script in it would have the user's zkLogin session.
 * Name your enclave, node and services in connect-src, in place of every origin.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  // Wallets bring their icons as data.
  "img-src 'self' data:",
  'connect-src http: https:',
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

/** Adds the policy to built pages; those of the development server have scripts of Vite's own. */
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
  // Relative, so that the page can be served below any path.
  base: './',
  server: { host: '127.0.0.1' },
  build: {
    target: 'es2022',
    // Inlined files would be data: URLs, and the polyfill a script of its own.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Poseidon's constants, which zkLogin needs, are half of it.
    chunkSizeWarningLimit: 1500,
    rolldownOptions: { input: { index: 'index.html', login: 'login.html' } },
  },
});
