import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../../src/dev/free-port.ts';
import { startServerProcess } from '../../harness/servers/server-process.ts';

export interface Tinyproxy {
  readonly port: number;
  /** What it wrote to its log: a line for each CONNECT. */
  output(): string;
  close(): Promise<void>;
}

/** Tinyproxy on 127.0.0.1, which asks for this user and password where they are given. */
export async function startTinyproxy(login?: {
  readonly user: string;
  readonly password: string;
}): Promise<Tinyproxy> {
  const program = process.env['TEST_TINYPROXY'];
  if (program === undefined) throw new Error('TEST_TINYPROXY is not set: npm run test:stores sets it');
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'gw-tinyproxy-'));
  const settings = join(folder, 'tinyproxy.conf');
  const lines = [`Port ${port}`, 'Listen 127.0.0.1', 'Timeout 60', 'MaxClients 100', 'LogLevel Connect'];
  if (login !== undefined) lines.push(`BasicAuth ${login.user} ${login.password}`);
  writeFileSync(settings, `${lines.join('\n')}\n`);
  const running = await startServerProcess(program, ['-d', '-c', settings], port);
  return {
    port,
    output: running.output,
    close: async () => {
      await running.close();
      rmSync(folder, { recursive: true });
    },
  };
}
