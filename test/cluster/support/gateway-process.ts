import type { ChildProcessByStdio } from 'node:child_process';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { root } from '../../chart/chart-files.ts';

/** What /readyz tells of the tables. */
export interface TablesState {
  readonly generation: number;
  readonly hash: string;
  readonly last_reload_ok: boolean;
}

export interface GatewayProcess {
  readonly exitCode: number | null;
  tables(): Promise<TablesState>;
  stop(): Promise<void>;
}

/** A start that takes longer than this has failed. */
const startLimitMs = 40_000;

/**
 * The gateway itself, as a pod with `tables.source: watch` runs it, on this machine and with the rights of a kubeconfig.
 * It has no database: that makes it unready, but not unable to follow its tables.
 */
export async function startGatewayProcess(kubeconfig: string, configMap: string): Promise<GatewayProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-'));
  const child = spawn(process.execPath, [join(root, 'src/main.ts')], {
    env: {
      PATH: process.env['PATH'],
      KUBECONFIG: kubeconfig,
      GW_TABLES_CONFIGMAP: configMap,
      PORT: '0',
      GW_HOST: '127.0.0.1',
      GW_ADMIN_PORT: '0',
      GW_ADMIN_HOST: '127.0.0.1',
      GW_DATA_DIR: folder,
      DATABASE_URL: 'postgres://gateway@127.0.0.1:1/gateway',
      GW_SEALING_KEYS: `v1:${randomBytes(32).toString('base64')}`,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill();
      await once(child, 'close');
    }
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const adminUrl = await listening(child);
    return {
      get exitCode() {
        return child.exitCode;
      },
      tables: async () => {
        const response = await fetch(`${adminUrl}/readyz`);
        return ((await response.json()) as { tables: TablesState }).tables;
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The admin address, once the gateway says it. */
function listening(child: ChildProcessByStdio<null, Readable, null>): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = () => reject(new Error('the gateway did not start'));
    const timer = setTimeout(fail, startLimitMs);
    child.once('close', fail);
    createInterface(child.stdout).on('line', (line) => {
      const { msg, admin_url: adminUrl } = JSON.parse(line) as { msg?: string; admin_url?: string };
      if (msg !== 'listening' || adminUrl === undefined) return;
      clearTimeout(timer);
      resolve(adminUrl);
    });
  });
}
