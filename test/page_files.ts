/**
 * Returns path and content of each file that a page shows: a block of code below a line with only its path.
 */
export function readFiles(page: string): Map<string, string> {
  const blocks = page.matchAll(/^`([\w./]+)`\n\n```\w+\n(.*?)^```$/gms);
  return new Map([...blocks].map(([, path = '', content = '']) => [path, content]));
}
