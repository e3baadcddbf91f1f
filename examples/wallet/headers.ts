import { headersFor } from '../../src/console/headers.ts';

/**
 * Content security policy and headers, which allow connections only to services and enclaves on this machine.
 */
export const { POLICY, HEADERS } = headersFor('http://127.0.0.1:* http://localhost:*');
