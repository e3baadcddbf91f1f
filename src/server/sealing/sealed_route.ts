/** The path of sealed requests, of which nothing but their arrival may be told. */
export const SEALED_ROUTE = '/sealed';
