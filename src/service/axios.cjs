// In CommonJS, so that axios is loaded when it is first needed: it looks for `FormData`, and for that Node loads all of
// fetch, a third of the server's start. Its build for browsers, a public entry of the package, has neither its client
// for Node nor code for redirects and proxies.
exports.loadAxios = () => require('axios/dist/browser/axios.cjs');
