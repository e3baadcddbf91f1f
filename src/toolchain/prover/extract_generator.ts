/** `sui-enclave prover_extract_generator`: extracts the witness generator from a container image. */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { command, runAsProcess, UnreadableFileError } from 'sui-enclave-cli/command';
import { path } from 'sui-enclave-cli/values';
import { ProverToolError } from './errors.ts';
import { extractFromImage } from './oci_archive.ts';

const MIB = 1024 ** 2;
/** Place of the generator in the published image, according to Sui's documentation. */
const GENERATOR = { folder: 'app/binaries', files: { zkLogin: 256 * MIB, 'zkLogin.dat': 2048 * MIB } };

export const main = command({
  name: 'prover_extract_generator',
  purpose: `Takes zkLogin and zkLogin.dat, the witness generator, out of the folder /app/binaries of a container image in an OCI
archive. Nothing of the image is run.`,
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
      throw new ProverToolError('FOLDER_EXISTS', `${out} exists already: name another folder by --out`);
    }
    mkdirSync(dirname(folder), { recursive: true });
    // The folder is complete or absent at any time.
    const fresh = mkdtempSync(`${folder}-`);
    try {
      const { digest, files } = await extractFromImage(archive, GENERATOR, fresh).catch((error) => {
        throw unreadable(archive, error) ?? error;
      });
      chmodSync(join(fresh, 'zkLogin'), 0o755);
      chmodSync(join(fresh, 'zkLogin.dat'), 0o644);
      chmodSync(fresh, 0o755);
      renameSync(fresh, folder);
      const lines = files.map(
        ({ name, bytes, sha256 }) => `${join(out, name)}  ${bytes} bytes  SHA-256 ${sha256}`,
      );
      return {
        json: { image: digest, folder: out, files },
        text: `${lines.join('\n')}\nof the image ${digest}. Set WITNESS_BINARIES=${out}.`,
      };
    } finally {
      rmSync(fresh, { recursive: true, force: true });
    }
  },
});

function unreadable(file: string, error: NodeJS.ErrnoException): Error | undefined {
  if (error.path !== file) return undefined;
  return new UnreadableFileError(`${file} can't be read: ${error.code}`);
}

if (import.meta.main) await runAsProcess(main);
