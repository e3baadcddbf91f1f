import { headersFor } from '../../src/console/headers.ts';

/** Allows connections to services and enclaves on this machine only. */
export const { POLICY, HEADERS } = headersFor('http://127.0.0.1:* http://localhost:*');
