/** Addresses for a link to an object or a transaction in the console. */
export interface ConsolePlace {
  /** URL of the console; undefined if the settings name none. */
  readonly url: string | undefined;
  /** URL of the node that the console asks. */
  readonly node: string;
}

interface Props {
  readonly place: ConsolePlace;
  /** Id of an object, or digest of a transaction. */
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
