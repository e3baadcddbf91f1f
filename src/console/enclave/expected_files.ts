/**
 * Root and registers to compare with. They are used only for the address for which they were given. A reload
 * keeps them, but no verdict.
 */
import { useEffect, useState } from 'react';
import { readDevelopment } from '../lib/development.ts';
import { type Given, recognizeFile, replaced } from './files.ts';
import { forget, type Kept, keep, recall } from './kept_files.ts';

interface Held extends Omit<Kept, 'address'> {
  /** The address that they are for; undefined until they are used for one. */
  readonly address: string | undefined;
}

export interface ExpectedFiles {
  readonly files: readonly Given[];
  /** Command that started this enclave, if its files are among these; otherwise undefined. */
  readonly startedBy: string | undefined;
  /** Files of the page's own server, offered if it lists no enclaves that it has started. */
  readonly offer: readonly Given[];
  /** Adds files, which replace those of the same kind. @returns all files that are then in use */
  give(added: readonly Given[]): readonly Given[];
  /** Removes a file from those in use. @returns the remaining files */
  remove(file: Given): readonly Given[];
  /** Binds files that were given without an address to the address that is being asked. */
  bind(): void;
}

const NOTHING: Held = { address: undefined, files: [], removed: [] };

/** @param address of the enclave, as `URL` writes it; undefined while the field has none */
export function useExpectedFiles(address: string | undefined): ExpectedFiles {
  const [held, setHeld] = useState<Held>(() => (address && recall(address)) || NOTHING);
  const server = useServer();
  const isOther = held.address !== undefined && held.address !== address;
  const present = isOther ? NOTHING : held;
  useEffect(() => {
    if (isOther) setHeld(NOTHING);
    // A link may have put another address into the field, for which this view has no files.
    if (present.address === undefined) forget();
  }, [isOther, present]);

  const isStarted = address !== undefined && server.started.includes(address);
  const collect = ({ files, removed }: Held) => {
    const ofServer = isStarted ? server.files.filter(({ kind }) => !removed.includes(kind)) : [];
    return replaced(ofServer, files);
  };
  const hold = (next: Held) => {
    setHeld(next);
    if (next.address !== undefined) keep({ ...next, address: next.address });
    return collect(next);
  };
  const files = collect(present);
  return {
    files,
    startedBy: isStarted && files.some((file) => server.files.includes(file)) ? server.command : undefined,
    offer: server.started.length === 0 ? server.files : [],
    give: (added) => hold({ ...present, address, files: replaced(present.files, added) }),
    remove: (file) =>
      hold({
        address,
        files: present.files.filter((kept) => kept !== file),
        removed: server.files.includes(file) ? [...present.removed, file.kind] : present.removed,
      }),
    bind: () => hold({ ...present, address }),
  };
}

interface OwnServer {
  /** The command that serves this page; undefined if the server does not name it. */
  readonly command: string | undefined;
  readonly started: readonly string[];
  readonly files: readonly Given[];
}

/** Reads the enclaves that the page's own server has started, and their root and registers. */
function useServer(): OwnServer {
  const [server, setServer] = useState<OwnServer>({ command: undefined, started: [], files: [] });
  useEffect(() => {
    let isMounted = true;
    void readDevelopment().then((development) => {
      if (!isMounted || development === undefined) return;
      const files = Object.entries(development.files).map(([name, text]) =>
        recognizeFile(name, new TextEncoder().encode(text)),
      );
      setServer({ ...development, files });
    });
    return () => {
      isMounted = false;
    };
  }, []);
  return server;
}
