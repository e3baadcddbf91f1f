/** Archives and Debian packages for tests, made in memory. */

export function makeTar(files: Readonly<Record<string, string>>): Buffer {
  const blocks: Buffer[] = [];
  for (const [name, content] of Object.entries(files)) {
    const header = Buffer.alloc(512);
    header.write(name, 0);
    header.write('0000644\0', 100);
    header.write('0000000\0', 108);
    header.write('0000000\0', 116);
    header.write(`${content.length.toString(8).padStart(11, '0')}\0`, 124);
    header.write('00000000000\0', 136);
    header.write('        ', 148);
    header.write(name.endsWith('/') ? '5' : '0', 156);
    header.write('ustar\x0000', 257);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    const data = Buffer.alloc(Math.ceil(content.length / 512) * 512);
    data.write(content);
    blocks.push(header, data);
  }
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

export function makeDeb(members: Readonly<Record<string, Buffer>>): Buffer {
  const pieces = Object.entries(members).flatMap(([name, data]) => [
    Buffer.from(
      `${name.padEnd(16)}${'0'.padEnd(12)}${'0'.padEnd(6)}${'0'.padEnd(6)}${'100644'.padEnd(8)}${String(data.length).padEnd(10)}\`\n`,
    ),
    data,
    Buffer.from(data.length % 2 === 1 ? '\n' : ''),
  ]);
  return Buffer.concat([Buffer.from('!<arch>\n'), ...pieces]);
}
