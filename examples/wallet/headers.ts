import { headersFor } from '../../src/console/headers.ts';

/** Services and enclaves of this machine only. */
export const { POLICY, HEADERS } = headersFor('http://127.0.0.1:* http://localhost:*');
