// This module is CommonJS, so that axios is loaded only when it is first needed. axios reads the global
// `FormData`, which makes Node load all of fetch: a third of the time that the server takes to start. axios'
// build for browsers is a public entry of its package. It has neither the client for Node nor code for
// redirects and proxies.
exports.loadAxios = () => require('axios/dist/browser/axios.cjs');
