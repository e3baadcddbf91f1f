/**
 * `sui-enclave/wallet`: zkLogin sessions as wallets of the Wallet Standard, for the connect button of a dapp.
 */
export type { ConfirmMessage, ConfirmRequest, ConfirmTransaction } from './confirm.ts';
export type { RegisterOptions, WalletProvider } from './options.ts';
export { type RegisteredWallets, registerZkLoginWallet } from './register.ts';
export type { RegisteredWallet } from './wallet.ts';
