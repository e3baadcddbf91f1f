/**
 * Errors of commands that talk to Sui: one `code` for each cause that the library's errors don't cover. No
 * message contains a private key.
 */
import { CodedError } from 'sui-enclave/errors';
import { EXIT } from '../command.ts';

const { failed, notTried } = EXIT;

/** Every code of a SuiCommandError, with the exit code of the command and its meaning. */
export const SUI_COMMAND_CODES = {
  NO_NETWORK: [notTried, 'Neither a network nor a node was named.'],
  NO_SENDER: [notTried, 'No sender was named.'],
  SIGNER: [notTried, "A key is missing or can't be read."],
  DEPLOYMENT: [
    notTried,
    "The file of the network's ids (deployments/) can't be used or lacks an id, or the node is of another chain than the network. Nothing was sent.",
  ],
  DEVELOPMENT_TRUST: [
    notTried,
    'Registers or roots of development are given for a real network. Nothing was sent.',
  ],
  EXPERIMENTAL_IMAGE: [
    notTried,
    'The image is not known to be of a tagged release, and a real network would allow it. Nothing was sent.',
  ],
  SOURCE_UNKNOWN: [
    notTried,
    'A repository was named for an image of which no build from a commit is recorded. Nothing was sent.',
  ],
  OPEN_SECRETS: [
    notTried,
    'The image needs secrets, and the config is open, or would be: strangers could run it. Nothing was sent.',
  ],
  SECRETS_UNKNOWN: [
    notTried,
    'The config is open, or would be, and no record of the build says that the image needs no secrets. Nothing was sent.',
  ],
  RELEASE_SIGNER: [
    notTried,
    'The release is signed by another signer than the one that the deployment file has. Nothing was sent.',
  ],
  NOT_CONFIRMED: [notTried, 'The step cannot be undone, and nobody confirmed it. Nothing was sent.'],
  FRAMEWORK_UNREACHABLE: [notTried, "Sui's framework could not be fetched."],
  MOVE: [failed, 'The compiler refuses a package, or warns about it.'],
  BYTECODE_FILE: [
    notTried,
    'A file of bytecode is not the one that was compiled, or is of another package or network. Nothing was sent.',
  ],
  ALREADY_PUBLISHED: [failed, '`Published.toml` says that the package is already on the network.'],
  INCOMPATIBLE: [failed, 'The package can not replace the one on chain. Nothing was sent.'],
  STUB_FRAMEWORK: [failed, "The bytecode was compiled against a stub of Sui's framework."],
  CAPABILITY: [
    failed,
    'The sender owns no capability for the application, or several of them; or the config belongs to another capability.',
  ],
  WOULD_ABORT: [failed, 'The chain would abort. Nothing was sent.'],
  FUNCTION: [
    failed,
    'The command can not call this Move function: `submit` and `post` call one that takes a signed answer, and `call` one that takes a capability.',
  ],
  OBJECT_EXISTS: [
    failed,
    'The deployment file has a shared object of a type that the call would create. Nothing was sent.',
  ],
  NOT_REGISTERED: [failed, 'The key that signed the answer is not registered. Nothing was sent.'],
  OTHER_PLACE: [failed, 'The enclave signed a reading of another place than the requested one.'],
} as const;

export type SuiCommandCode = keyof typeof SUI_COMMAND_CODES;

export class SuiCommandError extends CodedError<SuiCommandCode> {
  get exit(): number {
    return SUI_COMMAND_CODES[this.code][0];
  }
}
