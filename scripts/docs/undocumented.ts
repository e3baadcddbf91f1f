/**
 * TypeDoc plugin that requires docs of everything that a package exports: a comment of more than three words.
 */

/** Kinds of `ReflectionKind` that need docs of their own. Parameters are documented with their functions. */
const KINDS = {
  Variable: 32,
  Function: 64,
  Class: 128,
  Interface: 256,
  Property: 1024,
  Method: 2048,
  Accessor: 262_144,
  TypeAlias: 2_097_152,
};
const MIN_WORDS = 4;

/** The part of a reflection that the plugin uses. */
interface Reflection {
  readonly name: string;
  readonly kind: number;
  readonly comment?: Comment;
  readonly inheritedFrom?: unknown;
  readonly parent?: Reflection;
  readonly signatures?: readonly Reflection[];
  readonly getSignature?: Reflection;
  getFullName(): string;
}

interface Comment {
  readonly summary: readonly { readonly text: string }[];
}

interface TypeDoc {
  readonly converter: {
    on(event: 'resolveEnd', handle: (context: { readonly project: Project }) => void): void;
  };
  readonly logger: { error(message: string): void };
}

interface Project {
  getReflectionsByKind(kinds: number): readonly Reflection[];
}

/** Reports each exported name or member whose docs are missing or too short. TypeDoc then fails. */
export function load({ converter, logger }: TypeDoc): void {
  const kinds = Object.values(KINDS).reduce((all, kind) => all | kind, 0);
  converter.on('resolveEnd', ({ project }) => {
    for (const reflection of project.getReflectionsByKind(kinds)) {
      const problem = findProblem(reflection);
      if (problem !== null) logger.error(`${reflection.getFullName()} ${problem}`);
    }
  });
}

/** @returns the problem of a reflection's docs, as a phrase that follows its name; null without a problem */
function findProblem(reflection: Reflection): string | null {
  if (reflection.inheritedFrom !== undefined || isOfLiteral(reflection)) return null;
  const { comment = reflection.signatures?.[0]?.comment ?? reflection.getSignature?.comment } = reflection;
  const words = (comment?.summary ?? [])
    .map(({ text }) => text)
    .join('')
    .split(/\s+/)
    .filter((word) => word !== '');
  if (words.length === 0) return 'has no docs';
  return words.length < MIN_WORDS ? `has docs of ${words.length} words: ${words.join(' ')}` : null;
}

/**
 * Returns whether a reflection is a property of an object type in a signature, which the outer docs describe.
 */
function isOfLiteral({ kind, parent }: Reflection): boolean {
  const TYPE_LITERAL = 65_536;
  return kind === KINDS.Property && parent?.kind === TYPE_LITERAL;
}
