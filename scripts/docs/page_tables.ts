/** Makes the tables of settings and errors in the READMEs, from the tables that the code reads. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as v from 'valibot';
import { SALT_ERRORS } from '../../src/apps/salt/errors.ts';
import { SALT_SETTINGS } from '../../src/apps/salt/settings.ts';
import { WEATHER_ERRORS } from '../../src/apps/weather/errors.ts';
import { WEATHER_SETTINGS } from '../../src/apps/weather/settings.ts';
import { HOST_FAULTS } from '../../src/cli/parent/host_faults.ts';
import { RULES, type Rule } from '../../src/library/attestation/rules.ts';
import { EnclaveError } from '../../src/library/errors.ts';
import { BACKEND_SETTINGS } from '../../src/prover/backend/config.ts';
import { BACKEND_ERRORS } from '../../src/prover/backend/errors.ts';
import { PROVER_ERRORS } from '../../src/prover/errors.ts';
import { FRONTEND_SETTINGS } from '../../src/prover/frontend/config.ts';
import { parseManifest } from '../../src/server/application/manifest.ts';
import { SERVER_SETTINGS } from '../../src/server/config.ts';
import { ENCLAVE_ERRORS } from '../../src/server/enclave_errors.ts';
import { NSM_ERRORS } from '../../src/server/nsm/errors.ts';
import { type ErrorTable, SERVER_ERRORS } from '../../src/service/errors.ts';
import type { Setting, SettingTable } from '../../src/service/settings.ts';
import { AUDIT_CODES } from '../../src/toolchain/audit/errors.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Error of a page whose markers do not match its tables, of a secret without a meaning, or of a group of
 * errors with different statuses.
 */
export class TableError extends EnclaveError {
  readonly code = 'TABLES';
}

/** Tables of each page in Markdown, by the names in their markers. */
export const PAGES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'src/server/README.md': {
    settings: settingTable(SERVER_SETTINGS),
    errors: errorTable({ ...SERVER_ERRORS, ...ENCLAVE_ERRORS, ...NSM_ERRORS }, [
      ['SEALED_MALFORMED', 'SEALED_ALTERED', 'SEALED_CONTENT'],
      ['NSM_IO', 'NSM_TIMEOUT', 'NSM_BUSY', 'NSM_CLOSED', 'NSM_PROTOCOL', 'NSM_INPUT'],
      [
        'NSM_INVALID_ARGUMENT',
        'NSM_INVALID_INDEX',
        'NSM_INVALID_RESPONSE',
        'NSM_READ_ONLY_INDEX',
        'NSM_INVALID_OPERATION',
        'NSM_BUFFER_TOO_SMALL',
        'NSM_INPUT_TOO_LARGE',
        'NSM_INTERNAL_ERROR',
      ],
    ]),
  },
  'src/library/attestation/README.md': { rules: ruleTable() },
  'enclave/README.md': { faults: meaningTable(HOST_FAULTS) },
  'src/toolchain/audit/README.md': { codes: exitTable(AUDIT_CODES) },
  'src/apps/salt/README.md': {
    settings: settingTable(SALT_SETTINGS, {
      folder: 'src/apps/salt',
      meanings: {
        SALT_SEED:
          'a secret: the seeds, a line of 64 hex characters for each version, version 1 first. The server accepts it through `SECRETS_FD`, as a sealed secret, or from the file, but not from the environment',
      },
    }),
    errors: errorTable(SALT_ERRORS, [
      ['SALT_TOKEN_KEY_UNKNOWN', 'SALT_TOKEN_SIGNATURE'],
      ['SALT_TOKEN_EXPIRED', 'SALT_TOKEN_NOT_YET_VALID'],
      ['SALT_ISSUER_NOT_ALLOWED', 'SALT_CLIENT_NOT_ALLOWED'],
      ['SALT_ISSUER_UNREACHABLE', 'SALT_ISSUER_REFUSED', 'SALT_ISSUER_MALFORMED'],
    ]),
  },
  'src/apps/weather/README.md': {
    settings: settingTable(WEATHER_SETTINGS, {
      folder: 'src/apps/weather',
      meanings: {
        API_KEY: 'a secret: the key for weatherapi.com, or the absolute path of a file with it',
      },
    }),
    errors: errorTable(WEATHER_ERRORS, [
      ['WEATHER_STALE', 'WEATHER_FUTURE'],
      ['WEATHER_KEY_REFUSED', 'WEATHER_QUOTA_EXCEEDED'],
      ['WEATHER_UPSTREAM_REFUSED', 'WEATHER_UPSTREAM_BROKEN', 'WEATHER_UPSTREAM_UNEXPECTED'],
      ['WEATHER_MALFORMED', 'WEATHER_OVERSIZED'],
      ['WEATHER_TIMEOUT', 'WEATHER_SLOW_BODY'],
    ]),
  },
  'src/prover/README.md': {
    'settings of the front end': settingTable(FRONTEND_SETTINGS),
    errors: errorTable(PROVER_ERRORS),
    'settings of the backend': settingTable(BACKEND_SETTINGS),
    'errors of the backend': errorTable(BACKEND_ERRORS),
  },
};

/** Secrets of an application, which its app.yaml lists. They are not among its settings. */
interface Secrets {
  /** Folder of the application, from the root. */
  readonly folder: string;
  readonly meanings: Readonly<Record<string, string>>;
}

/** Returns a table with a row for each setting and each secret. */
export function settingTable(table: SettingTable, secrets?: Secrets): string {
  const rows = Object.entries(table).map(([name, setting]) => [
    `\`${name}\``,
    v.getTitle(setting.schema) ?? '',
    formatDefault(setting),
    setting.meaning,
  ]);
  return inMarkdown(
    ['variable', 'values', 'default', 'meaning'],
    [...rows, ...(secrets === undefined ? [] : secretRows(secrets))],
  );
}

function formatDefault({ default: text, optional }: Setting): string {
  if (text) return `\`${text}\``;
  return optional || text === '' ? 'none' : 'required';
}

function secretRows({ folder, meanings }: Secrets): string[][] {
  return parseManifest(readFileSync(join(ROOT, folder, 'app.yaml'), 'utf8')).secrets.map((name) => {
    const meaning = meanings[name];
    if (meaning === undefined) throw new TableError(`${folder}/app.yaml: the secret ${name} has no meaning`);
    return [`\`${name}\`, \`${name}_FILE\``, '', 'none', meaning];
  });
}

/**
 * Returns a table with a row for each error or group of errors, sorted by status.
 *
 * @param groups of codes that share a row; the errors of a group must have the same status
 */
export function errorTable<Code extends string>(
  table: ErrorTable<Code>,
  groups: readonly (readonly NoInfer<Code>[])[] = [],
): string {
  const codes = Object.keys(table) as Code[];
  const rows = codes.flatMap((code) => {
    const group = groups.find((codes) => codes.includes(code)) ?? [code];
    if (group[0] !== code) return [];
    const statuses = new Set(group.map((member) => table[member].status));
    if (statuses.size > 1) throw new TableError(`${code}: the errors of a group must have the same status`);
    const names = group.map((member) => `\`${member}\``).join(', ');
    return [[`${table[code].status}`, names, group.map((member) => table[member].meaning).join('; ')]];
  });
  const byStatus = rows.toSorted(([status], [otherStatus]) => Number(status) - Number(otherStatus));
  return inMarkdown(['status', 'code', 'cause'], byStatus);
}

/** Returns a table with a row for each code of a command, in the order of the codes. */
function exitTable(table: Readonly<Record<string, readonly [exit: number, meaning: string]>>): string {
  const rows = Object.entries(table).map(([code, [exit, meaning]]) => [`\`${code}\``, String(exit), meaning]);
  return inMarkdown(['code', 'exit', 'meaning'], rows);
}

/** Returns a table with a row for each code of a fault, in the order of the codes. */
function meaningTable(table: Readonly<Record<string, string>>): string {
  const rows = Object.entries(table).map(([code, meaning]) => [`\`${code}\``, meaning]);
  return inMarkdown(['code', 'meaning'], rows);
}

/** Returns a table with a row for each rule of an attestation, in the order of the rules. */
function ruleTable(): string {
  const rows = RULES.map((rule, index) => [
    String(index + 1),
    `\`${rule.id}\``,
    rule.text,
    rule.codes.map((code) => `\`${code}\``).join(', '),
    describeSuiCheck(rule),
  ]);
  return inMarkdown(['#', 'id', 'rule', 'code of the error', "Sui's verifier"], rows);
}

function describeSuiCheck(rule: Rule): string {
  const line = 'suiLine' in rule ? `line ${rule.suiLine}` : null;
  if (rule.sui === 'caller') return "the contract's";
  if (rule.sui === 'same') return line ?? 'the same';
  return line === null ? 'stricter' : `stricter than ${line}`;
}

function inMarkdown(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => '---'), ...rows].map((cells) => {
    const escaped = cells.map((cell) => cell.replaceAll('|', '\\|'));
    return `| ${escaped.join(' | ')} |`.replaceAll('|  |', '| |');
  });
  return lines.join('\n');
}

/**
 * Returns the page with its tables between their markers.
 *
 * @throws TableError if a table does not have exactly one pair of markers, or if a marker has no table
 */
export function withTables(page: string, tables: Readonly<Record<string, string>>): string {
  const places = [...page.matchAll(PLACE)].map(([, name = '']) => name);
  const expected = Object.keys(tables);
  if (places.toSorted().join() !== expected.toSorted().join()) {
    throw new TableError(
      `the page has places for: ${places.join(', ')}; its tables are: ${expected.join(', ')}`,
    );
  }
  return page.replaceAll(PLACE, (_, name: string) => {
    return `<!-- table: ${name} -->\n\n${tables[name]}\n\n<!-- end of the table -->`;
  });
}

const PLACE = /<!-- table: ([\w ]+) -->\n.*?<!-- end of the table -->/gs;

/**
 * Updates the tables in the pages.
 *
 * @returns the paths of the changed pages
 * @throws TableError before it writes
 */
export function writeTables(root = ROOT): string[] {
  const changed = Object.entries(PAGES).flatMap(([path, tables]) => {
    const page = readFileSync(join(root, path), 'utf8');
    const written = withTables(page, tables);
    return written === page ? [] : [{ path, written }];
  });
  for (const { path, written } of changed) writeFileSync(join(root, path), written);
  return changed.map(({ path }) => path);
}
