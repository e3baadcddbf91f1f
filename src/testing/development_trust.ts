/**
 * Loads the emulated NSM of `make dev ATTEST=emulated` and its root. The root is kept between starts, so that
 * a developer has to give a client `dev-root.pem` only once.
 */
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmdirSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { replaceFile } from 'sui-enclave-service/replace_file';
import { createRoot, type Identity, ROOT_NAME, toPem } from './attestation_ca.ts';
import { developmentRegisters, EmulatedNsm } from './emulated_nsm.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const OWNER_ONLY = 0o600;
/**
 * Age of a lock in milliseconds after which it is ignored. Writing a root takes only milliseconds, so the
 * program with an older lock was killed.
 */
const LOCK_EXPIRES_MS = 5000;
const LOCK_RETRY_MS = 20;

export class DevelopmentTrust {
  readonly nsm: EmulatedNsm;
  /** Name of the file with the registers in the folder. Each image of each application has its own file. */
  readonly pcrsName: string;
  readonly #folder: URL;
  /** Whether there was no usable root before, so that this start has made one. */
  readonly isNew: boolean;

  /**
   * Loads the root from a folder, or creates it there.
   *
   * @param folder URL that ends in a slash. The folder need not exist. A root in it that can't be used is
   *   replaced
   * @param application name of the application that the NSM attests, which is a folder of src/apps
   * @param options `image`: see `developmentRegisters`; `now`: in milliseconds since 1970
   */
  static load(
    folder: URL,
    application: string,
    { image = 1, now = Date.now() }: { readonly image?: number; readonly now?: number } = {},
  ): DevelopmentTrust {
    const registers = developmentRegisters(application, image);
    const pcrsName = DevelopmentTrust.pcrsName(application, image);
    const existingRoot = readRoot(folder, now);
    const { root, isNew } = existingRoot ? { root: existingRoot, isNew: false } : createRootOnce(folder, now);
    return new DevelopmentTrust(folder, registers, pcrsName, root, isNew);
  }

  /** Returns the name of the file with the registers of an application's image. */
  static pcrsName(application: string, image: number): string {
    const name = application === 'weather' ? 'dev' : `dev-${application}`;
    // No application has a dot in its name.
    return image === 1 ? `${name}.pcrs` : `${name}.${image}.pcrs`;
  }

  private constructor(
    folder: URL,
    registers: readonly Uint8Array[],
    pcrsName: string,
    root: Identity,
    isNew: boolean,
  ) {
    this.#folder = folder;
    this.isNew = isNew;
    this.nsm = new EmulatedNsm(Date.now, root, registers);
    this.pcrsName = pcrsName;
  }

  /** Writes the registers of the emulated NSM to their file. @returns a line to print */
  save(): string {
    mkdirSync(this.#folder, { recursive: true });
    replaceFile(fileURLToPath(new URL(this.pcrsName, this.#folder)), this.nsm.pcrsFile());
    const root = this.isNew ? 'a new root, out/dev-root.pem' : 'the root in out/dev-root.pem';
    return `Attestation is emulated under ${root}: its documents prove nothing. Registers: out/${this.pcrsName}.`;
  }
}

/**
 * Makes a root and writes it with its key, unless a program that started at the same moment has just written
 * one. Both programs must have the same root.
 */
function createRootOnce(folder: URL, now: number): { readonly root: Identity; readonly isNew: boolean } {
  mkdirSync(folder, { recursive: true });
  const lock = fileURLToPath(new URL('dev-root.lock', folder));
  takeLock(lock);
  try {
    const existingRoot = readRoot(folder, now);
    if (existingRoot) return { root: existingRoot, isNew: false };
    const root = createRoot(new Date(now));
    const key = root.privateKey.export({ type: 'pkcs8', format: 'pem' });
    replaceFile(fileURLToPath(new URL('dev-root.key', folder)), key.toString(), OWNER_ONLY);
    replaceFile(fileURLToPath(new URL('dev-root.pem', folder)), toPem(root.certificate), 0o644);
    return { root, isNew: true };
  } finally {
    rmdirSync(lock);
  }
}

/** Makes a folder as a lock. Waits as long as another program holds the lock. */
function takeLock(folder: string): void {
  for (;;) {
    try {
      mkdirSync(folder);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const createdMs = statSync(folder, { throwIfNoEntry: false })?.mtimeMs;
    if (createdMs !== undefined && Date.now() - createdMs > LOCK_EXPIRES_MS) rmdirSync(folder);
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_RETRY_MS);
  }
}

/**
 * Reads the root. Returns undefined if it is missing or damaged, if it expires within a day, if the key is
 * not its key, or if other users can read the key.
 */
function readRoot(folder: URL, now: number): Identity | undefined {
  const [pemFile, keyFile] = [new URL('dev-root.pem', folder), new URL('dev-root.key', folder)];
  if (!existsSync(pemFile) || !existsSync(keyFile)) return undefined;
  try {
    if ((statSync(keyFile).mode & 0o077) !== 0) return undefined;
    const certificate = new X509Certificate(readFileSync(pemFile));
    const privateKey = createPrivateKey(readFileSync(keyFile));
    const isUsable =
      certificate.toLegacyObject().subject.CN === ROOT_NAME &&
      certificate.checkPrivateKey(privateKey) &&
      certificate.verify(certificate.publicKey) &&
      certificate.validFromDate.getTime() <= now &&
      certificate.validToDate.getTime() > now + DAY_MS;
    if (!isUsable) return undefined;
    const publicKey = createPublicKey(privateKey);
    return { certificate: new Uint8Array(certificate.raw), name: ROOT_NAME, publicKey, privateKey };
  } catch {
    return undefined;
  }
}
