/** The end of a process whose rows have no place but stdout, and whose stdout is read slowly. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { encodeSpoolLine } from '../../src/adapters/spool/spool-line.ts';
import { startGateway } from '../harness/gateway/start-gateway.ts';
import { closedPort } from '../harness/servers/dead-ports.ts';
import { useFolder } from '../harness/servers/use-started.ts';

/** 8 MiB at about 3 MiB/s: for longer than a reader that takes nothing is waited for. */
const spooledRows = 8_000;
const pauseMs = 20;

const folder = useFolder();

test('rows that Postgres did not take all reach a reader of stdout that is slow, at the end of the process', async () => {
  const filler = 'x'.repeat(1_000);
  const lines = Array.from({ length: spooledRows }, (_, row) =>
    encodeSpoolLine(JSON.stringify({ row, filler })),
  );
  await mkdir(join(folder.path, 'slot-0'));
  await writeFile(join(folder.path, 'slot-0', '0000000001.ndjson'), lines.join(''));
  const away = (await closedPort()).replace('http://', 'postgres://');
  const env = { DATABASE_URL: `${away}/gateway`, GW_SPOOL_DIR: folder.path };
  const gateway = await startGateway({ env });
  try {
    const { stdout } = gateway.process;
    stdout?.on('data', () => {
      stdout.pause();
      setTimeout(() => stdout.resume(), pauseMs);
    });
    gateway.process.kill('SIGTERM');
    expect(await gateway.exited).toBe(0);
    const printed = gateway.logs().filter(({ event }) => event === 'request_log_row');
    expect(printed.map(({ row }) => (row as { row: number }).row)).toEqual(lines.map((_, row) => row));
  } finally {
    await gateway.stop('SIGKILL');
  }
});
