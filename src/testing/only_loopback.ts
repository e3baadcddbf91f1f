/**
 * Keeps what an application sends by itself on this machine, as an enclave does, where only `upstream()` of
 * `create` leads out: a request that works on a developer's machine must not fail first in the enclave.
 */
import { type NetConnectOpts, Socket } from 'node:net';
import { ApplicationMistake } from 'sui-enclave/errors';
import { UPSTREAM } from 'sui-enclave-service/exchange';
import { isLoopback } from './loopback.ts';

type Options = NetConnectOpts & {
  readonly host?: string;
  readonly path?: string;
  readonly [UPSTREAM]?: true;
};

/** 127.0.0.0/8 (RFC 1122, section 3.2.1.3), and the unspecified addresses, which systems take for it. */
const THIS_MACHINE = /^(127\.\d{1,3}\.\d{1,3}\.\d{1,3}|0\.0\.0\.0|::)$/;

const { connect } = Socket.prototype;
/** Servers of this process that run. */
let running = 0;

/**
 * Ends every connection of this process to another machine, but those of `upstream()`, with an error that
 * says what to call instead.
 *
 * @returns what allows them again, once all servers that called it have ended
 */
export function allowOnlyLoopback(): () => void {
  running++;
  Socket.prototype.connect = connectHere as typeof connect;
  let hasEnded = false;
  return () => {
    if (hasEnded) return;
    hasEnded = true;
    running--;
    if (running === 0) Socket.prototype.connect = connect;
  };
}

function connectHere(this: Socket, ...args: unknown[]): Socket {
  const { host = 'localhost', path, [UPSTREAM]: isUpstream } = readOptions(args);
  const staysHere = typeof path === 'string' || isLoopback(host) || THIS_MACHINE.test(host);
  if (staysHere || isUpstream === true) return Reflect.apply(connect, this, args);
  const error = new ApplicationMistake(
    `a connection to ${host} leaves this machine, and an enclave has no network: list the host in app.yaml, and ask it by upstream() of create`,
  );
  // As Node reports a host that can't be reached.
  process.nextTick(() => this.destroy(error));
  return this;
}

/** The three forms of arguments that Node documents, and the list that its own modules pass. */
function readOptions([first, second]: unknown[]): Partial<Options> {
  const value: unknown = Array.isArray(first) ? first[0] : first;
  if (typeof value === 'object' && value !== null) return value;
  if (typeof value === 'string' && !/^\d+$/.test(value)) return { path: value };
  return typeof second === 'string' ? { host: second } : {};
}
