/**
 * The salt service as it is, for out/test-salt.eif: beside this file are its settings and the test's
 * authority.
 */
export { default } from 'sui-enclave-salt/app';
