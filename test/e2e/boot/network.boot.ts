/** Tests that a step of a container build reaches neither the network nor this machine. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { buildContainer } from '../../../src/toolchain/image/container.ts';

/**
 * Connects to a port of 127.0.0.1 and to an outside address, where nothing needs to answer, and writes the
 * outcomes.
 */
const PROGRAM = `
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
static const char* attempt(const char* ip, int port, int type) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
  inet_pton(AF_INET, ip, &to.sin_addr);
  int fd = socket(AF_INET, type, 0);
  return connect(fd, (struct sockaddr*)&to, sizeof to) == 0 ? "connected" : strerror(errno);
}
int main(int argc, char** argv) {
  FILE* file = fopen(argc > 2 ? argv[2] : "/result", "w");
  fprintf(file, "%s\\n", attempt("127.0.0.1", atoi(argv[1]), SOCK_STREAM));
  /* Connecting a UDP socket sends nothing: it only needs a route. */
  fprintf(file, "%s\\n", attempt("192.0.2.1", 9, SOCK_DGRAM));
  return fclose(file);
}
`;

test('a RUN step reaches neither the network nor the machine that builds', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'network-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const context = join(dir, 'context');
  const output = join(dir, 'output');
  for (const folder of [context, output]) mkdirSync(folder);
  writeFileSync(join(dir, 'attempt.c'), PROGRAM);
  const program = join(context, 'attempt');
  execFileSync('cc', ['-static', '-o', program, join(dir, 'attempt.c')]);
  const server = createServer();
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  // Outside of a build, the program does reach the server. A failure in the build is thus caused by the
  // build.
  execFileSync(program, [String(port), join(dir, 'here')]);
  expect(readFileSync(join(dir, 'here'), 'utf8').split('\n')[0]).toBe('connected');

  const recipe = join(dir, 'Containerfile');
  writeFileSync(
    recipe,
    `FROM scratch AS step\nCOPY attempt /\nRUN ["/attempt", "${port}"]\nFROM scratch\nCOPY --from=step /result /\n`,
  );
  buildContainer({ file: recipe, context, args: {}, output, fresh: true });
  expect(readFileSync(join(output, 'result'), 'utf8')).toBe(
    'Network is unreachable\nNetwork is unreachable\n',
  );
});
