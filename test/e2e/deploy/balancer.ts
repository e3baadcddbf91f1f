/**
 * Gives HAProxy a command by its socket, and fails unless HAProxy answers with an empty line, as it does
 * without an error.
 *
 * Arguments: path of the socket, command.
 */
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';

const [path = '', command = ''] = process.argv.slice(2);
const socket = connect(path);
socket.write(`${command}\n`);
const answer = (await text(socket)).trim();
if (answer !== '') {
  process.stderr.write(`${answer}\n`);
  process.exitCode = 1;
}
