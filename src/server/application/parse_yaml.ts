/**
 * The only place that parses YAML. It refuses everything about which the parser would only warn, since a
 * warning contains the file's text.
 */
import { parseDocument } from 'yaml';

/**
 * @throws YAMLError, or another Error of the parser, also for text without a defined meaning, such as an
 *   unknown tag
 */
export function parseYaml(text: string): unknown {
  // At any other level, the parser prints warnings, or reads the first of several documents.
  const document = parseDocument(text, { logLevel: 'error' });
  const [problem] = [...document.errors, ...document.warnings];
  if (problem !== undefined) throw problem;
  return document.toJS();
}
