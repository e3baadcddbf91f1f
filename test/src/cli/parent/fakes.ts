/**
 * Fakes of the parent's programs on PATH, since tests have neither nitro-cli nor aws. They record their
 * calls, and keep the state that the real programs would show. The relay is real, but connects by IP in place
 * of vsock.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { onTestFinished } from 'vitest';
import { writeCpio } from '../../../../src/cli/image/cpio.ts';
import { makeEnvironment, makeSettings } from '../../../../src/cli/image/settings.ts';
import { stopServices } from '../../../../src/cli/parent/services.ts';
import { formatManifest, parseManifest } from '../../../../src/server/application/manifest.ts';
import { writeEif } from '../../../../src/toolchain/image/eif/write.ts';
import { RELAY } from '../../../enclave/relay.ts';
import { METADATA } from '../../toolchain/image/metadata.ts';
import { callScript, type Result } from '../run.ts';

const SCRIPTS = fileURLToPath(new URL('../../../../src/cli/parent', import.meta.url));

/** Functions that all fakes share. `$FAKES` is the folder of their state; a missing file counts as empty. */
const COMMON = String.raw`
# A single write, since several fakes may append at the same time.
call=$(printf '%s\001' "$(basename "$0")" "$@")
printf '%s\n' "$call" >>"$FAKES/calls"
text() { cat "$FAKES/$1" 2>/dev/null || :; }
fail() { printf %s "$1" >&2; exit 1; }
[ -z "$(text "$(basename "$0") is interrupted")" ] || fail interrupted
# Prints the argument that follows an option.
after() {
  option=$1; shift
  while [ $# -gt 1 ]; do [ "$1" != "$option" ] || { printf %s "$2"; return; }; shift; done
}
`;

const PROGRAMS = {
  'nitro-cli': String.raw`
[ -z "$NITRO_FAILS" ] || fail "$NITRO_FAILS"
enclaves=$(text enclaves)
case $1 in
  describe-enclaves) [ -z "$(text 'describe fails')" ] || fail "$(text 'describe fails')"; echo "[$enclaves]" ;;
  run-enclave)
    name=$(after --enclave-name "$@")
    # Writes to this file, as the relay does, what an enclave sends to the parent's log port.
    [ -z "$NITRO_REPORTS" ] || printf %s "$NITRO_REPORTS" >>"$SUI_ENCLAVE_STATE/$name/reports.jsonl"
    [ -z "$NITRO_RUN_FAILS" ] || fail "$NITRO_RUN_FAILS"
    n=$(printf %s "$enclaves" | grep -o EnclaveID | wc -l)
    case "$*" in *--debug-mode*) flags=DEBUG_MODE ;; *) flags=NONE ;; esac
    [ -n "$NITRO_PCR0" ] || NITRO_PCR0=$(text pcr0)
    more=; [ -z "$NITRO_PCR0" ] || more=",\"Measurements\":{\"PCR0\":\"$NITRO_PCR0\"}"
    new="{\"EnclaveName\":\"$name\",\"EnclaveID\":\"i-1-enc$((n + 1))\",\"EnclaveCID\":$(after --enclave-cid "$@"),\"Flags\":\"$flags\"$more}"
    [ -z "$enclaves" ] || enclaves=$enclaves,
    printf %s "$enclaves$new" >"$FAKES/enclaves"
    echo "$new" ;;
  terminate-enclave)
    printf %s "$enclaves" | sed 's/{[^{}]*"EnclaveID":"'"$(after --enclave-id "$@")"'"[^{}]*},\{0,1\}//;s/,$//' >"$FAKES/enclaves"
    echo '{}' ;;
  console) echo 'the console'; [ -z "$(text 'console stays')" ] || exec sleep 600 ;;
  --version) echo 'Nitro CLI 1.4.2' ;;
  *) fail '[ E14 ] no such command' ;;
esac`,
  ss: 'text sockets',
  // Shows each unit as the file `unit NAME` says, by default as active.
  systemctl: String.raw`
case $1 in
  is-active) text active ;;
  "$(text 'systemctl fails')") fail 'no such unit' ;;
  show)
    shift 2
    for unit; do
      state=$(text "unit $unit")
      [ -n "$state" ] || state='active running success 0'
      echo "$state" | {
        read -r active sub result job
        printf 'Id=%s\nActiveState=%s\nSubState=%s\nResult=%s\nJob=%s\n' "$unit" "$active" "$sub" "$result" "$job"
        printf 'StateChangeTimestamp=Fri 2026-11-27 19:05:51 UTC\n\n'
      }
    done ;;
esac`,
  journalctl: 'text journal',
  'systemd-sysusers': '',
  // Makes the folders below `root`. If the file `owner of USER` exists, it has the owner of USER's folders.
  'systemd-tmpfiles': `
[ -z "$(text 'systemd-tmpfiles does nothing')" ] || exit 0
shift
for file; do
  while read -r _ path mode user group; do
    mkdir -p "$FAKES/root$path"
    owner=$(text "owner of $user")
    [ -z "$owner" ] || chown -h "$owner" "$FAKES/root$path"
    chmod "$mode" "$FAKES/root$path"
  done <"$FAKES/root$file"
done`,
  userdel: '',
  // Keeps one stack in the file `stack`, and answers with `changes`, `resources`, `groups` and `instances`.
  aws: String.raw`
[ "$1" != --region ] || shift 2
[ "$1" != --output ] || shift 2
action=$2
[ "$(text denied)" != "$action" ] || fail 'An error occurred (UnauthorizedOperation): not allowed'
or() { if [ -e "$FAKES/$1" ]; then cat "$FAKES/$1"; else echo "$2"; fi; }
case $action in
  get-secret-value) text secret ;;
  describe-instance-types)
    or 'instance type' '{"InstanceTypes":[{"NitroEnclavesSupport":"supported","ProcessorInfo":{"SupportedArchitectures":["x86_64"]},"VCpuInfo":{"DefaultVCpus":4},"MemoryInfo":{"SizeInMiB":16384}}]}' ;;
  head-object)
    key=$(after --key "$@")
    size=$(text "size of $(basename "$key")")
    [ -n "$size" ] || fail 'An error occurred (404) when calling the HeadObject operation: Not Found'
    echo "{\"ContentLength\":$size}" ;;
  describe-stacks)
    [ -e "$FAKES/stack" ] || fail "An error occurred (ValidationError) when calling the DescribeStacks operation: Stack with id $4 does not exist"
    text stack ;;
  create-change-set)
    cat /dev/stdin >"$FAKES/template"
    [ "$(after --template-body "$@")" = file:///dev/stdin ] || fail 'another template'
    after --parameters "$@" >"$FAKES/parameters"
    echo '{"Id":"arn:change-set"}' ;;
  describe-change-set)
    or changes '{"Status":"CREATE_COMPLETE","Changes":[{"ResourceChange":{"Action":"Add","LogicalResourceId":"EnclaveGroup1","ResourceType":"AWS::AutoScaling::AutoScalingGroup"}}]}' ;;
  execute-change-set)
    printf '{"Stacks":[{"StackStatus":"CREATE_COMPLETE","Parameters":%s}]}' "$(text parameters)" >"$FAKES/stack" ;;
  delete-stack) rm "$FAKES/stack" ;;
  wait) [ "$3" != "$(text 'wait fails')" ] || fail "Waiter failed" ;;
  describe-stack-resources) or resources '{"StackResources":[]}' ;;
  describe-stack-events) or events '{"StackEvents":[]}' ;;
  describe-auto-scaling-groups) or groups '{"AutoScalingGroups":[]}' ;;
  describe-instances) or instances '{"Reservations":[]}' ;;
  delete-change-set | set-instance-protection) ;;
  *) fail "no such action: $action" ;;
esac`,
};

export class Parent {
  readonly dir = mkdtempSync(join(tmpdir(), 'parent-'));
  /** First three bytes of the IPv4 addresses that represent CIDs; the last byte is the CID. */
  readonly network = `127.${randomInt(1, 255)}.${randomInt(0, 255)}`;
  readonly #bin = join(this.dir, 'bin');

  /** @param missing names of programs that this parent lacks */
  constructor(missing: readonly (keyof typeof PROGRAMS)[] = []) {
    mkdirSync(this.#bin);
    for (const [name, source] of Object.entries(PROGRAMS)) {
      if (missing.includes(name as keyof typeof PROGRAMS)) continue;
      writeFileSync(join(this.#bin, name), `#!/bin/sh\n${COMMON}${source}\n`);
      chmodSync(join(this.#bin, name), 0o755);
    }
    symlinkSync(RELAY, join(this.dir, 'relay'));
    onTestFinished(async () => {
      const relay = join(this.dir, 'state/relay');
      if (existsSync(relay)) await stopServices(relay);
      rmSync(this.dir, { recursive: true });
    });
  }

  get path(): string {
    // The fakes come before the system's programs, such as id.
    return `${this.#bin}:/usr/bin:/bin`;
  }

  get env(): Record<string, string> {
    return {
      HOME: this.dir,
      PATH: this.path,
      FAKES: this.dir,
      SUI_ENCLAVE_STATE: join(this.dir, 'state'),
      VSOCK_NET: this.network,
      // The relay must not resolve names.
      HOSTS: '/dev/null',
    };
  }

  get state(): string {
    return join(this.dir, 'state/sui-enclave');
  }

  /** Returns the relay's process id; undefined if no relay was started. */
  get relayPid(): number | undefined {
    const path = join(this.dir, 'state/relay/relay.json');
    return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).pid : undefined;
  }

  /** Returns the settings of the relay for an enclave; undefined if there are none. */
  conf(name = 'sui-enclave'): string | undefined {
    const path = join(this.dir, 'state/relay', `${name}.conf`);
    return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  }

  /** Runs one of the parent's commands in this process. */
  run(
    script: string,
    args: readonly string[] = [],
    env: Record<string, string> = {},
    stdin = '',
  ): Promise<Result> {
    return callScript(`parent/${script}`, args, { env: { ...this.env, ...env }, input: stdin });
  }

  /** Starts one of the parent's commands as a process, which ends with the test at the latest. */
  start(script: string, args: readonly string[]): ChildProcess {
    const child = spawn(process.execPath, [join(SCRIPTS, script), ...args], {
      cwd: this.dir,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: this.env,
      // The process gets a group of its own, so that no part of it outlives the test.
      detached: true,
    });
    onTestFinished(() => {
      try {
        process.kill(-(child.pid as number), 'SIGKILL');
      } catch {
        // The group has ended.
      }
    });
    return child;
  }

  /** Returns the calls of the fakes so far. @param name the program; undefined for all */
  calls(name?: string): string[] {
    const lines = existsSync(join(this.dir, 'calls')) ? readFileSync(join(this.dir, 'calls'), 'utf8') : '';
    return lines
      .split('\x01\n')
      .filter((line) => line !== '')
      .map((line) => line.split('\x01').join(' '))
      .filter((line) => name === undefined || line.startsWith(`${name} `));
  }

  /** Writes a file of the fakes' state. */
  set(file: string, text: string): void {
    writeFileSync(join(this.dir, file), text);
  }

  /** Makes an enclave the only running one. */
  setEnclave(
    properties: {
      EnclaveName?: string;
      EnclaveID?: string;
      EnclaveCID?: number;
      Flags?: string;
      NumberOfCPUs?: number;
      MemoryMiB?: number;
      Measurements?: object;
    } = {},
  ) {
    const enclave = { EnclaveName: 'sui-enclave', EnclaveID: 'i-1-enc1', EnclaveCID: 16, ...properties };
    this.set('enclaves', JSON.stringify(enclave));
  }

  read(file: string): string {
    return readFileSync(join(this.dir, file), 'utf8');
  }

  /**
   * Makes a small image whose application has this manifest. @param serverEnv the application's server.env
   */
  makeImage(manifest?: string, serverEnv?: string): string {
    return writeImage(join(this.dir, 'x.eif'), manifest, serverEnv);
  }
}

/**
 * Writes a small image whose application has this manifest.
 *
 * @param serverEnv the application's server.env
 * @param form the manifest's file in the image: app.json, or app.yaml as in older builds
 * @returns the image's path
 */
export function writeImage(
  path: string,
  manifest = 'endpoints: [api.weatherapi.com]\nsecrets: [API_KEY]\n',
  serverEnv = '',
  form: 'app.json' | 'app.yaml' = 'app.json',
): string {
  const parsed = parseManifest(manifest);
  const settings = makeSettings(parsed, makeEnvironment('weather', parsed, serverEnv, false));
  const application = writeCpio(
    new Map([
      [`app/${form}`, { data: Buffer.from(form === 'app.yaml' ? manifest : formatManifest(parsed)) }],
      ['app/enclave.conf', { data: Buffer.from(settings) }],
    ]),
  );
  const parts = {
    kernel: Buffer.alloc(1),
    cmdline: 'a',
    ramdisks: [Buffer.from('b'), gzipSync(application)],
  };
  writeFileSync(path, writeEif(parts, METADATA));
  return path;
}
