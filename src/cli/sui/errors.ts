/**
 * Errors of commands that talk to Sui: one `code` for each cause that the library's errors don't cover. No
 * message contains a private key.
 */
import { CodedError } from 'sui-enclave/errors';
import { EXIT } from '../command.ts';

const { failed, notTried } = EXIT;

/** Every code of a SuiCommandError, with the command's exit code and the meaning of the code. */
export const SUI_COMMAND_CODES = {
  NO_NETWORK: [notTried, 'Neither a network nor a node was named.'],
  NO_SENDER: [notTried, 'No sender was named.'],
  SIGNER: [notTried, "A key is missing or can't be read."],
  DEPLOYMENT: [
    notTried,
    "The deployment file (deployments/<network>.json) can't be used or lacks an id, or the node serves another chain or lags behind the file. Nothing was sent.",
  ],
  DEVELOPMENT_TRUST: [
    notTried,
    'Development registers or a development root were given for a real network. Nothing was sent.',
  ],
  EXPERIMENTAL_IMAGE: [
    notTried,
    'The image is not known to come from a tagged release, and the config is on a real network. Nothing was sent.',
  ],
  SOURCE_UNKNOWN: [
    notTried,
    'A repository was named for the image, but no record says that the image was built from a commit. Nothing was sent.',
  ],
  OPEN_SECRETS: [
    notTried,
    'The image needs secrets, and the config is open, or would be, so strangers could run the image. Nothing was sent.',
  ],
  SECRETS_UNKNOWN: [
    notTried,
    'The config is open, or would be, and no record of the build says that the image needs no secrets. Nothing was sent.',
  ],
  RELEASE_SIGNER: [
    notTried,
    'The signer of the release is not the one in the deployment file. Nothing was sent.',
  ],
  NOT_CONFIRMED: [notTried, 'The step cannot be undone, and the user did not confirm it. Nothing was sent.'],
  FRAMEWORK_UNREACHABLE: [notTried, "Sui's framework could not be fetched."],
  MOVE: [failed, 'The compiler refuses a package, or warns about it.'],
  BYTECODE_FILE: [
    notTried,
    "The bytecode file does not have the given digest, can't be read, or is of another package or network. Nothing was sent.",
  ],
  ALREADY_PUBLISHED: [failed, '`Published.toml` says that the package is already on the network.'],
  INCOMPATIBLE: [failed, "The package can't replace the one on chain. Nothing was sent."],
  STUB_FRAMEWORK: [failed, "The bytecode was compiled against a stub of Sui's framework."],
  CAPABILITY: [
    failed,
    'The sender owns no capability for the application, or several of them; or the config belongs to another capability.',
  ],
  WOULD_ABORT: [failed, 'The transaction would abort on chain. Nothing was sent.'],
  FUNCTION: [
    failed,
    'The command can not call this Move function: `submit` and `post` call one that takes a signed answer, and `call` one that takes a capability.',
  ],
  OBJECT_EXISTS: [
    failed,
    'The deployment file already has a shared object of a type that the call would create. Nothing was sent.',
  ],
  NOT_REGISTERED: [failed, 'The key that signed the answer is not registered. Nothing was sent.'],
  OTHER_PLACE: [failed, 'The enclave signed a reading of a place other than the requested one.'],
} as const;

export type SuiCommandCode = keyof typeof SUI_COMMAND_CODES;

export class SuiCommandError extends CodedError<SuiCommandCode> {
  get exit(): number {
    return SUI_COMMAND_CODES[this.code][0];
  }
}
