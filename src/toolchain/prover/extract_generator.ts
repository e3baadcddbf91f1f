/** `sui-enclave prover_extract_generator`: extracts the witness generator from a container image. */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { command, runAsProcess, UnreadableFileError } from 'sui-enclave-cli/command';
import { path } from 'sui-enclave-cli/values';
import { ProverToolError } from './errors.ts';
import { extractFromImage } from './oci_archive.ts';

const MIB = 1024 ** 2;
/** Generator in the published image, according to Sui's documentation, with the maximum size of each file. */
const GENERATOR = { folder: 'app/binaries', files: { zkLogin: 256 * MIB, 'zkLogin.dat': 2048 * MIB } };

export const main = command({
  name: 'prover_extract_generator',
  purpose: `Extracts zkLogin and zkLogin.dat, the witness generator, from the folder /app/binaries of a container image in an OCI
archive. Runs nothing of the image.`,
  example: '--archive prover.tar --out binaries',
  arguments: {},
  options: {
    archive: { value: '<file>', help: 'the image as an OCI archive', schema: path, required: true },
    out: { value: '<folder>', help: 'a new folder for the two files', schema: path, default: 'witness' },
  },
  notes: `To make the archive:  skopeo copy docker://mysten/zklogin:prover-stable oci-archive:prover.tar

exit codes: 0 done; 1 the archive is refused, or has no generator; 2 invalid command line, or the file can't be read`,
  async run({ options: { archive, out } }) {
    const folder = resolve(out);
    if (existsSync(folder)) {
      throw new ProverToolError('FOLDER_EXISTS', `${out} exists already: pass another folder as --out`);
    }
    mkdirSync(dirname(folder), { recursive: true });
    // The folder is complete or absent at any time.
    const temporary = mkdtempSync(`${folder}-`);
    try {
      const { digest, files } = await extractFromImage(archive, GENERATOR, temporary).catch((error) => {
        throw unreadable(archive, error) ?? error;
      });
      chmodSync(join(temporary, 'zkLogin'), 0o755);
      chmodSync(join(temporary, 'zkLogin.dat'), 0o644);
      chmodSync(temporary, 0o755);
      renameSync(temporary, folder);
      const lines = files.map(
        ({ name, bytes, sha256 }) => `${join(out, name)}  ${bytes} bytes  SHA-256 ${sha256}`,
      );
      return {
        json: { image: digest, folder: out, files },
        text: `${lines.join('\n')}\nfrom the image ${digest}. Set WITNESS_BINARIES=${out}.`,
      };
    } finally {
      rmSync(temporary, { recursive: true, force: true });
    }
  },
});

function unreadable(file: string, error: NodeJS.ErrnoException): Error | undefined {
  if (error.path !== file) return undefined;
  return new UnreadableFileError(`${file} can't be read: ${error.code}`);
}

if (import.meta.main) await runAsProcess(main);
