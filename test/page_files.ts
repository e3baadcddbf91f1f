/**
 * Returns the content of each file in a page, by its path. Such a file is a block of code below a line that
 * has only the path.
 */
export function readFiles(page: string): Map<string, string> {
  const blocks = page.matchAll(/^`([\w./]+)`\n\n```\w+\n(.*?)^```$/gms);
  return new Map([...blocks].map(([, path = '', content = '']) => [path, content]));
}
