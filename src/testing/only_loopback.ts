/**
 * Restricts the connections that an application opens itself to this machine. In an enclave, only
 * `upstream()` of `create` reaches other machines. A request that works on a developer's machine must not
 * fail for the first time in the enclave.
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

/**
 * Matches 127.0.0.0/8 (RFC 1122, section 3.2.1.3), and the unspecified addresses, which systems treat as this
 * machine.
 */
const THIS_MACHINE = /^(127\.\d{1,3}\.\d{1,3}\.\d{1,3}|0\.0\.0\.0|::)$/;

const { connect } = Socket.prototype;
/** Number of this process's servers that are running. */
let runningServers = 0;

/**
 * Ends every connection of this process to another machine, except for those of `upstream()`. The error says
 * what to call instead.
 *
 * @returns a function that a server calls at its end. Connections are allowed again once all servers have
 *   called it
 */
export function allowOnlyLoopback(): () => void {
  runningServers++;
  Socket.prototype.connect = connectHere as typeof connect;
  let hasEnded = false;
  return () => {
    if (hasEnded) return;
    hasEnded = true;
    runningServers--;
    if (runningServers === 0) Socket.prototype.connect = connect;
  };
}

function connectHere(this: Socket, ...args: unknown[]): Socket {
  const { host = 'localhost', path, [UPSTREAM]: isUpstream } = readOptions(args);
  const staysHere = typeof path === 'string' || isLoopback(host) || THIS_MACHINE.test(host);
  if (staysHere || isUpstream === true) return Reflect.apply(connect, this, args);
  const error = new ApplicationMistake(
    `a connection to ${host} leaves this machine, and an enclave has no network: list the host in app.yaml, and send requests to it by upstream() of create`,
  );
  // Node reports an unreachable host in this way.
  process.nextTick(() => this.destroy(error));
  return this;
}

/** Reads the three forms of arguments that Node documents, and the list that Node's own modules pass. */
function readOptions([first, second]: unknown[]): Partial<Options> {
  const value: unknown = Array.isArray(first) ? first[0] : first;
  if (typeof value === 'object' && value !== null) return value;
  if (typeof value === 'string' && !/^\d+$/.test(value)) return { path: value };
  return typeof second === 'string' ? { host: second } : {};
}
