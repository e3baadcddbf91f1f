/** Package `app` with the contract of `move/feed/README.md` that reads a feed. */
import { readFileSync } from 'node:fs';

export const FEED_README = readFileSync(new URL('../../move/feed/README.md', import.meta.url), 'utf8');

const [, source = ''] = /```move\n(module app::dollars;\n.*?)```/s.exec(FEED_README) ?? [];

/** Files of the package, by path. */
export const READER_FILES: Readonly<Record<string, string>> = {
  'Move.toml': `[package]
name = "app"
edition = "2024"

[dependencies]
enclave = { local = "../enclave" }
feed = { local = "../feed" }
`,
  'sources/dollars.move': source,
};
