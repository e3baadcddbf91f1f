/** The backend's own entry, as a child process that ends with its parent, however that ends. */
process.on('disconnect', () => process.exit(1));
await import('sui-enclave-prover/backend/main');
