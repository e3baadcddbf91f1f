import { type ReactNode, useId } from 'react';

interface Props {
  readonly title: string;
  /** Content beside the title. */
  readonly aside?: ReactNode;
  readonly children: ReactNode;
}

export function Panel({ title, aside, children }: Props) {
  const id = useId();
  return (
    <section className="panel" aria-labelledby={id}>
      <header>
        <h3 id={id}>{title}</h3>
        {aside}
      </header>
      {children}
    </section>
  );
}
