/** A link to an object or a transaction in the console, where the settings name one. */
export interface ConsolePlace {
  /** URL of the console; undefined where there is none. */
  readonly url: string | undefined;
  /** URL of the node that the console asks. */
  readonly node: string;
}

interface Props {
  readonly place: ConsolePlace;
  /** An object id, or the digest of a transaction. */
  readonly id: string;
  readonly text: string;
}

export function ConsoleLink({ place: { url, node }, id, text }: Props) {
  if (url === undefined) return <>{text}</>;
  const query = new URLSearchParams({ node, id });
  return (
    <a href={`${url}#/chain?${query}`} target="_blank" rel="noreferrer">
      {text}
    </a>
  );
}
