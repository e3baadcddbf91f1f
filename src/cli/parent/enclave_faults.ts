/** Judges the state of an enclave: its faults, the worst first, each with the command that mends it. */
import type { Image } from 'sui-enclave/attestation/image';
import { PROGRAM } from '../places.ts';
import type { EnclaveState } from './enclave_state.ts';
import { type HostFault, KEY_LOST } from './host_faults.ts';
import type { RunningEnclave } from './nitro_cli.ts';
import type { UnitState } from './unit_states.ts';

const NEW_KEY = 'it makes a new key, which a keeper or register_enclave must register';

/** Returns the advice to replace a running enclave, without an interruption or with an interruption. */
export function adviseReplacement({ unit }: Pick<EnclaveState, 'unit'>): string {
  return `start a replacement while it still runs (${PROGRAM} host_install <another name> --port <another port> --start), let it be registered, move the callers, then systemctl stop ${unit.unit}: ${KEY_LOST}. Or, with an interruption, systemctl restart ${unit.unit}: ${KEY_LOST}, and callers wait until the next key is registered`;
}

/** Returns the faults of an enclave. @param isRelayActive if false, faults of connections are left out */
export function findFaults(state: EnclaveState, isRelayActive: boolean): HostFault[] {
  const { running } = state;
  if (running === undefined) return [];
  const [enclave] = running;
  if (enclave === undefined) return [describeAbsence(state)];
  return [
    ...findUnitFaults(state, running),
    ...findImageFaults(state, enclave),
    ...(isRelayActive ? findServerFaults(state) : []),
  ];
}

const describeUnit = ({ unit, active, sub }: UnitState) => `${unit} is ${active} (${sub})`;

/**
 * Returns a command for a unit. If systemd has given up on the unit, the command resets its counter first.
 */
function formatCommand(verb: 'start' | 'restart', { unit, result }: UnitState): string {
  return `${result === 'start-limit-hit' ? `systemctl reset-failed ${unit} && ` : ''}systemctl ${verb} ${unit}`;
}

function describeAbsence({ name, unit, lastEnd }: EnclaveState): HostFault {
  const lastEndText = lastEnd === undefined ? '' : `; the last enclave reported: ${lastEnd}`;
  if (unit.active === 'inactive') {
    const text = `${name} does not run, since its unit is stopped${lastEndText}`;
    return { code: 'ENCLAVE_STOPPED', text, advice: `${formatCommand('start', unit)}: ${NEW_KEY}` };
  }
  if (unit.active === 'failed') {
    const text = `${name} does not run, and systemd does not start it again (${unit.result})${lastEndText}`;
    const advice = `journalctl -u ${unit.unit} says why. Then ${formatCommand('start', unit)}: ${NEW_KEY}`;
    return { code: 'ENCLAVE_FAILED', text, advice };
  }
  const text = `nitro-cli lists no enclave ${name}, and ${describeUnit(unit)}${lastEndText}`;
  const advice = `wait, and run ${PROGRAM} host_status ${name} again: systemd starts the enclave, or gives up`;
  return { code: 'ENCLAVE_CHANGING', text, advice };
}

function findUnitFaults({ name, unit, end }: EnclaveState, running: readonly RunningEnclave[]): HostFault[] {
  const faults: HostFault[] = [];
  if (running.length > 1) {
    const ids = running.map(({ EnclaveID }) => EnclaveID).join(', ');
    const text = `several enclaves are named ${name}: ${ids}`;
    const advice = `find out which of them callers use (the unit watches ${running[0]?.EnclaveID}), and run nitro-cli terminate-enclave --enclave-id <id>: ${KEY_LOST}`;
    faults.push({ code: 'ENCLAVE_TWICE', text, advice });
  }
  if (unit.active === 'inactive' || unit.active === 'failed') {
    const text = `${name} runs, but its unit does not watch it: ${describeUnit(unit)}`;
    const advice = `${formatCommand('start', unit)}: it finds the enclave that runs, and keeps its key. To end the enclave, run this command first, and then systemctl stop ${unit.unit}: ${KEY_LOST}`;
    faults.push({ code: 'ENCLAVE_UNWATCHED', text, advice });
  } else if (unit.active !== 'active') {
    const text = `${name} runs, but ${describeUnit(unit)}`;
    const advice = `wait, and run ${PROGRAM} host_status ${name} again: systemd starts the unit, which keeps the enclave and its key`;
    faults.push({ code: 'ENCLAVE_CHANGING', text, advice });
  } else if (end.active !== 'active') {
    const text = `systemctl stop ${unit.unit} may leave ${name} running: ${describeUnit(end)}`;
    const advice = `systemctl start ${end.unit}, or ${PROGRAM} host_upgrade ${name} --eif <file> if an older version installed it: neither ends an enclave`;
    faults.push({ code: 'END_UNIT_DOWN', text, advice });
  }
  return faults;
}

/** Returns the registers that nitro-cli has measured; undefined if it reports none. */
export function readMeasuredImage({ Measurements: measured }: RunningEnclave): Partial<Image> | undefined {
  const { PCR0: pcr0, PCR1: pcr1, PCR2: pcr2 } = measured ?? {};
  if (pcr0 === undefined) return undefined;
  return { pcr0, ...(pcr1 !== undefined && { pcr1 }), ...(pcr2 !== undefined && { pcr2 }) };
}

/** Compares the registers that both images have. */
function isSameImage(measured: Partial<Image>, image: Image | undefined): boolean {
  if (image === undefined) return false;
  return (['pcr0', 'pcr1', 'pcr2'] as const).every(
    (register) => measured[register] === undefined || measured[register] === image[register],
  );
}

function findImageFaults(state: EnclaveState, enclave: RunningEnclave): HostFault[] {
  const { name, unit, installedImage, startedImage } = state;
  const faults: HostFault[] = [];
  if (enclave.Flags?.includes('DEBUG_MODE')) {
    const text = `${name} runs in debug mode: its registers are zeros, and root here reads its memory`;
    const advice = `systemctl restart ${unit.unit}: ${KEY_LOST}, and no contract accepts that key`;
    faults.push({ code: 'DEBUG_MODE', text, advice });
  }
  if (installedImage === undefined) {
    const text = `the registers of the image that the next start of ${name} runs can't be read`;
    const advice = `${PROGRAM} host_upgrade ${name} --eif <file>: it places the image and its registers, and does not end an enclave`;
    faults.push({ code: 'IMAGE_UNREADABLE', text, advice });
  }
  const measured = readMeasuredImage(enclave);
  if (measured !== undefined && isSameImage(measured, installedImage)) return faults;
  if (measured !== undefined && isSameImage(measured, startedImage)) {
    if (installedImage === undefined) return faults;
    const text = `${name} still runs the previous image: PCR0 ${measured.pcr0}`;
    const advice = `replace it, after the config accepts the installed image: ${adviseReplacement(state)}. Or ${PROGRAM} host_upgrade ${name} --eif <the file of the running image>: the next start runs that image again`;
    return [...faults, { code: 'IMAGE_PENDING', text, advice }];
  }
  const image = measured === undefined ? 'nitro-cli reports no registers for it' : `PCR0 ${measured.pcr0}`;
  const text = `${name} runs an image that was not installed here: ${image}`;
  const advice = `give it no secrets, and find out who started it: ${adviseReplacement(state)}`;
  return [...faults, { code: 'IMAGE_UNKNOWN', text, advice }];
}

function findServerFaults(state: EnclaveState): HostFault[] {
  const { name, expose, listen, metricsPort, isForwarded, server } = state;
  const reopen = `${formatCommand('restart', expose)}: it opens the port, passes the secrets, and ends no enclave`;
  const faults: HostFault[] = [];
  if (expose.active === 'activating' && expose.sub !== 'auto-restart') {
    const text = `the unit for port and secrets of ${name} is at work: ${describeUnit(expose)}`;
    const advice = `wait a minute, and run ${PROGRAM} host_status ${name} again`;
    return [{ code: 'ENCLAVE_CHANGING', text, advice }];
  }
  if (expose.active !== 'active') {
    const text = `the unit for port and secrets of ${name} does not run: ${describeUnit(expose)}`;
    const advice = `journalctl -u ${expose.unit} says why. Then ${reopen}`;
    faults.push({ code: 'EXPOSE_FAILED', text, advice });
  } else if (!isForwarded) {
    const metricsText = metricsPort === undefined ? '' : `, or 127.0.0.1:${metricsPort} to its metrics`;
    const text = `the relay does not forward ${listen.address}:${listen.port} to ${name}${metricsText}`;
    faults.push({ code: 'PORT_CLOSED', text, advice: reopen });
  }
  if (server === undefined) {
    if (!isForwarded) return faults;
    const text = `the server of ${name} does not answer at ${listen.address}:${listen.port}`;
    const advice = `wait a minute if the enclave has just started. Then ${adviseReplacement(state)}`;
    return [...faults, { code: 'SERVER_SILENT', text, advice }];
  }
  if (!server.isReady) {
    const refusal = server.refused === undefined ? '' : `; the last set was refused: ${server.refused}`;
    const text = `${name} waits for its secrets: ${server.missing.join(', ')}${refusal}`;
    const provisionAdvice = `${PROGRAM} provision, or its watcher, on the machine that has the secrets: this ends no enclave`;
    faults.push({ code: 'SECRETS_MISSING', text, advice: state.passesSecrets ? reopen : provisionAdvice });
  }
  const [taskWarnings, clockWarnings] = [true, false].map((isOfTask) =>
    server.warnings.filter((warning) => warning.startsWith('the task ') === isOfTask).join('; '),
  );
  if (clockWarnings) {
    const text = `${name} warns of its clock: ${clockWarnings}`;
    const advice = `check again after ten minutes: the server asks the NSM each minute. If the warning stays, ${adviseReplacement(state)}`;
    faults.push({ code: 'CLOCK_DOUBTFUL', text, advice });
  }
  if (taskWarnings) {
    const text = `${name} warns of its tasks: ${taskWarnings}`;
    const advice =
      'journalctl -u sui-enclave-relay.service has the code of each failure, if the image has EVENTS; this ends no enclave';
    faults.push({ code: 'TASK_FAILS', text, advice });
  }
  return faults;
}
