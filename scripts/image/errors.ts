/** What can stop the build of an image, each with what to do about it. */
import { EnclaveError } from '../../src/errors.ts';

/** A lock file is not what `make update-lock` writes. */
export class LockInvalid extends EnclaveError {
  readonly code = 'LOCK_INVALID';
}

/** There is nowhere to fetch Debian's packages from. */
export class NoMirror extends EnclaveError {
  readonly code = 'NO_MIRROR';
}

/** A locked version is gone from every source that could be reached. */
export class PackageGone extends EnclaveError {
  readonly code = 'PACKAGE_GONE';
}

/** A file has another content than the lock says. */
export class PackageChanged extends EnclaveError {
  readonly code = 'PACKAGE_CHANGED';
}

/** A package or archive can't be read, or holds what must not be in an image. */
export class ArchiveInvalid extends EnclaveError {
  readonly code = 'ARCHIVE_INVALID';
}

/** A program that the build runs ended with an error. */
export class CommandFailed extends EnclaveError {
  readonly code = 'COMMAND_FAILED';
}
