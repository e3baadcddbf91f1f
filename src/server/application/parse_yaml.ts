/**
 * The only place that parses YAML: what the parser only warns of, with the file's text in its warning, is
 * refused here.
 */
import { parseDocument } from 'yaml';

/**
 * @throws YAMLError, or another Error of the parser, also for what has no meaning by itself, such as an
 *   unknown tag
 */
export function parseYaml(text: string): unknown {
  // At any other level it prints warnings, or reads the first of several documents.
  const document = parseDocument(text, { logLevel: 'error' });
  const [problem] = [...document.errors, ...document.warnings];
  if (problem !== undefined) throw problem;
  return document.toJS();
}
