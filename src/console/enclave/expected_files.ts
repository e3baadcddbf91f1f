/**
 * Holds root and registers to compare with. They apply only to the address for which the user gave them. They
 * survive a reload of the page; verdicts do not.
 */
import { useEffect, useState } from 'react';
import { readDevelopment } from '../lib/development.ts';
import { type RecognizedFile, recognizeFile, replaceFiles } from './files.ts';
import { readStoredFiles, removeStoredFiles, type StoredFiles, storeFiles } from './stored_files.ts';

interface FilesState extends Omit<StoredFiles, 'address'> {
  /** The address to which the files apply; undefined until they are used for an address. */
  readonly address: string | undefined;
}

export interface ExpectedFiles {
  readonly files: readonly RecognizedFile[];
  /** Command that started this enclave, if its files are among these; else undefined. */
  readonly startedBy: string | undefined;
  /** Files of the page's own server, offered if it lists no enclaves that it has started. */
  readonly offer: readonly RecognizedFile[];
  /** Adds files, which replace files of the same kind. @returns all files in use */
  give(newFiles: readonly RecognizedFile[]): readonly RecognizedFile[];
  /** Removes a file from those in use. @returns the remaining files */
  remove(file: RecognizedFile): readonly RecognizedFile[];
  /** Binds files that were given without an address to the address that is being asked. */
  bind(): void;
}

const NO_FILES: FilesState = { address: undefined, files: [], removed: [] };

/** @param address of the enclave, as `URL` writes it; undefined while the field has none */
export function useExpectedFiles(address: string | undefined): ExpectedFiles {
  const [state, setState] = useState<FilesState>(() => (address && readStoredFiles(address)) || NO_FILES);
  const server = useServer();
  const isForOtherAddress = state.address !== undefined && state.address !== address;
  const current = isForOtherAddress ? NO_FILES : state;
  useEffect(() => {
    if (isForOtherAddress) setState(NO_FILES);
    // A link may have put another address into the field, for which this view has no files.
    if (current.address === undefined) removeStoredFiles();
  }, [isForOtherAddress, current]);

  const isStarted = address !== undefined && server.started.includes(address);
  const collect = ({ files, removed }: FilesState) => {
    const serverFiles = isStarted ? server.files.filter(({ kind }) => !removed.includes(kind)) : [];
    return replaceFiles(serverFiles, files);
  };
  const update = (newState: FilesState) => {
    setState(newState);
    if (newState.address !== undefined) storeFiles({ ...newState, address: newState.address });
    return collect(newState);
  };
  const files = collect(current);
  return {
    files,
    startedBy: isStarted && files.some((file) => server.files.includes(file)) ? server.command : undefined,
    offer: server.started.length === 0 ? server.files : [],
    give: (newFiles) => update({ ...current, address, files: replaceFiles(current.files, newFiles) }),
    remove: (file) =>
      update({
        address,
        files: current.files.filter((candidate) => candidate !== file),
        removed: server.files.includes(file) ? [...current.removed, file.kind] : current.removed,
      }),
    bind: () => update({ ...current, address }),
  };
}

interface PageServer {
  /** The command that serves this page; undefined if the server does not name it. */
  readonly command: string | undefined;
  readonly started: readonly string[];
  readonly files: readonly RecognizedFile[];
}

/** Reads the enclaves that the page's own server has started, and their root and registers. */
function useServer(): PageServer {
  const [server, setServer] = useState<PageServer>({ command: undefined, started: [], files: [] });
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
