/**
 * The salt service, unchanged, for out/test-salt.eif. Its settings and the test's authority are beside this
 * file.
 */
export { default } from 'sui-enclave-salt/app';
