/**
 * Why a command that talks to Sui failed: one `code` for each cause that the library's errors don't cover. No message
 * contains a private key.
 */
import { CodedError } from 'sui-enclave/errors';

/** Every code of a SuiCommandError, and what it means. */
export const SUI_COMMAND_CODES = {
  NO_NETWORK: 'Neither a network nor a node was named.',
  NO_SENDER: 'No sender was named.',
  SIGNER: "A key is missing or can't be read.",
  DEPLOYMENT: "The file of the network's ids (deployments/) can't be used, or lacks an id.",
  DEVELOPMENT_TRUST: 'Registers or roots of development are given for a real network. Nothing was sent.',
  EXPERIMENTAL_IMAGE:
    'The image is not known to be of a tagged release, and a real network would allow it. Nothing was sent.',
  NOT_CONFIRMED: 'The step can not be undone, and nobody confirmed it. Nothing was sent.',
  FRAMEWORK_UNREACHABLE: "Sui's framework could not be fetched.",
  MOVE: 'The compiler refuses a package, or warns about it.',
  ALREADY_PUBLISHED: '`Published.toml` says that the package is already on the network.',
  INCOMPATIBLE: 'The package can not replace the one on chain. Nothing was sent.',
  STAND_IN_FRAMEWORK: "The bytecode was compiled against a stand-in for Sui's framework.",
  CAPABILITY: 'The sender owns no capability for the application, or several of them.',
  WOULD_ABORT: 'The chain would abort. Nothing was sent.',
  FUNCTION: 'The Move function can not be called with a signed answer by itself.',
  NOT_REGISTERED: 'The key that signed the answer is not registered. Nothing was sent.',
  OTHER_PLACE: 'The enclave signed a reading of another place than the requested one.',
} as const;

export type SuiCommandCode = keyof typeof SUI_COMMAND_CODES;

export class SuiCommandError extends CodedError<SuiCommandCode> {}
