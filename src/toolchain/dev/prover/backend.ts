/** Starts the proving backend as a child process. It ends with its parent, no matter how the parent ends. */
process.on('disconnect', () => process.exit(1));
await import('sui-enclave-prover/backend/main');
