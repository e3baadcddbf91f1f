import { visibleText } from '../lib/visible_text.ts';
import { Mark } from '../parts/mark.tsx';
import type { RecognizedFile } from './files.ts';

const KIND_NAMES = { document: 'document', registers: 'expected registers', roots: 'root' } as const;

interface Props {
  readonly files: readonly RecognizedFile[];
  readonly onDrop: (file: RecognizedFile) => void;
}

/** Lists the files, besides the document, on which the verdict depends. */
export function FileList({ files, onDrop }: Props) {
  const hasRoots = files.some(({ kind }) => kind === 'roots');
  return (
    <ul className="chips" aria-label="What is compared">
      {!hasRoots && (
        <li className="chip fixed">
          <span className="subtle">root</span> AWS Nitro, built in
        </li>
      )}
      {files.map((file) => {
        const name = visibleText(file.name, 80);
        return (
          <li key={`${file.kind} ${file.name}`} className="chip">
            {file.kind === 'refused' ? (
              <span>
                <Mark state="failed" label="Refused" /> {name}: {visibleText(file.why, 200)}
              </span>
            ) : (
              <span>
                <span className="subtle">{KIND_NAMES[file.kind]}</span> {name}
              </span>
            )}
            <button type="button" aria-label={`Remove ${name}`} onClick={() => onDrop(file)}>
              ×
            </button>
          </li>
        );
      })}
    </ul>
  );
}
