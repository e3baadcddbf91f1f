/**
 * Root and registers to compare with, bound to the address that they were given for: another address does
 * without them. A reload keeps them in the session storage of the tab; no verdict is kept.
 */
import { useEffect, useState } from 'react';
import { fromHex, toHex } from '../lib/bytes.ts';
import { type Development, readDevelopment } from '../lib/development.ts';
import { type Given, recognizeFile, replaced } from './files.ts';

const KEY = 'sui-enclave.expected';

type Kept = Extract<Given, { kind: 'registers' | 'roots' }>;

interface Held {
  /** The address that they are for; undefined until they are used for one. */
  readonly address: string | undefined;
  readonly files: readonly Given[];
  /** Files of the page's own server that the person has removed. */
  readonly removed: readonly Given['kind'][];
}

export interface ExpectedFiles {
  readonly files: readonly Given[];
  /** The command whose files are among them, since it has started this enclave; undefined otherwise. */
  readonly startedBy: string | undefined;
  /** Files of the page's own server, which says of no address that it has started it. */
  readonly offer: readonly Given[];
  /** Takes files in place of those of the same kind. @returns all that count then */
  give(added: readonly Given[]): readonly Given[];
  /** @returns all that count then */
  remove(file: Given): readonly Given[];
  /** Binds what was given without an address to this one, which is being asked. */
  bind(): void;
}

/** @param address of the enclave, as `URL` writes it; undefined while the field has none */
export function useExpectedFiles(address: string | undefined): ExpectedFiles {
  const [held, setHeld] = useState<Held>(() => load(address));
  const development = useDevelopment();
  const isOther = held.address !== undefined && held.address !== address;
  useEffect(() => {
    if (!isOther) return;
    sessionStorage.removeItem(KEY);
    setHeld({ address: undefined, files: [], removed: [] });
  }, [isOther]);

  const present = isOther ? { address: undefined, files: [], removed: [] } : held;
  const isStarted = address !== undefined && development?.started.includes(address) === true;
  const serverFiles = listFiles(development);
  const collect = ({ files, removed }: Held) => {
    const ofServer = isStarted ? serverFiles.filter(({ kind }) => !removed.includes(kind)) : [];
    return replaced(ofServer, files);
  };
  const hold = (next: Held) => {
    setHeld(next);
    save(next);
    return collect(next);
  };
  const files = collect(present);
  return {
    files,
    startedBy:
      isStarted && files.some((file) => serverFiles.includes(file)) ? development?.command : undefined,
    offer: development?.started.length === 0 ? serverFiles : [],
    give: (added) => hold({ ...present, address, files: replaced(present.files, added) }),
    remove: (file) =>
      hold({
        ...present,
        files: present.files.filter((item) => item !== file),
        removed: serverFiles.includes(file) ? [...present.removed, file.kind] : present.removed,
      }),
    bind: () => hold({ ...present, address }),
  };
}

/** Recognises the files once for each answer of the server, so that they keep their identity. */
const recognized = new WeakMap<Development, readonly Given[]>();

function listFiles(development: Development | undefined): readonly Given[] {
  if (development === undefined) return [];
  const before = recognized.get(development);
  if (before !== undefined) return before;
  const files = Object.entries(development.files).map(([name, text]) =>
    recognizeFile(name, new TextEncoder().encode(text)),
  );
  recognized.set(development, files);
  return files;
}

function useDevelopment(): Development | undefined {
  const [development, setDevelopment] = useState<Development>();
  useEffect(() => {
    let isMounted = true;
    void readDevelopment().then((answer) => isMounted && setDevelopment(answer));
    return () => {
      isMounted = false;
    };
  }, []);
  return development;
}

function save({ address, files }: Held): void {
  const kept = files.filter((file): file is Kept => file.kind === 'registers' || file.kind === 'roots');
  if (address === undefined || kept.length === 0) {
    sessionStorage.removeItem(KEY);
    return;
  }
  const written = kept.map((file) =>
    file.kind === 'roots' ? { ...file, roots: file.roots.map(toHex) } : file,
  );
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ address, files: written }));
  } catch {
    // A full or forbidden storage: a reload does without them.
  }
}

function load(address: string | undefined): Held {
  const nothing = { address: undefined, files: [], removed: [] };
  if (address === undefined) return nothing;
  try {
    const stored = JSON.parse(sessionStorage.getItem(KEY) ?? 'null');
    if (stored?.address !== address) return nothing;
    return { address, files: stored.files.map(readKept), removed: [] };
  } catch {
    return nothing;
  }
}

/** @throws Error if this version of the page did not write it */
function readKept(file: { kind: string; name: string; images: []; roots: string[] }): Kept {
  const { kind, name, images, roots } = file;
  if (kind === 'registers' && Array.isArray(images)) return { kind, name, images };
  const decoded = roots.map(fromHex).filter((root) => root !== undefined);
  if (kind !== 'roots' || decoded.length !== roots.length) throw new Error('not a kept file');
  return { kind, name, roots: decoded };
}
