/** The path of sealed requests. Logs, figures and events may reveal only that such a request arrived. */
export const SEALED_ROUTE = '/sealed';
