import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../../src/dev/free-port.ts';
import { toolPath } from '../cluster/tools.ts';
import { patient } from '../measure/crowding.ts';

const START_TIMEOUT_MS = 60_000;
const POLL_MS = 20;

export interface RegistryProcess {
  /** `127.0.0.1:port`, as it stands before the names of images. */
  readonly host: string;
  close(): Promise<void>;
}

/** An empty OCI registry without TLS, in a temporary folder. Throws where it does not come up. */
export async function startRegistry(): Promise<RegistryProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'registry-'));
  const host = `127.0.0.1:${await freePort()}`;
  const config = {
    version: 0.1,
    log: { level: 'error', accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: folder } },
    http: { addr: host },
  };
  const path = join(folder, 'registry.yml');
  writeFileSync(path, JSON.stringify(config)); // JSON is YAML
  const server = spawn(toolPath('registry'), ['serve', path], {
    stdio: 'ignore',
    env: { ...process.env, OTEL_TRACES_EXPORTER: 'none' },
  });
  server.once('error', () => undefined); // seen below: it never answers
  writeFileSync(join(folder, 'registry.pid'), `${server.pid}`);
  const close = async () => {
    if (server.exitCode !== null || server.signalCode !== null || server.pid === undefined) return;
    const gone = once(server, 'exit');
    server.kill('SIGKILL'); // there is nothing to save
    await gone;
  };
  const deadline = Date.now() + patient(START_TIMEOUT_MS);
  while (!(await answers(host))) {
    if (Date.now() > deadline || server.exitCode !== null || server.pid === undefined) {
      await close();
      throw new Error('the registry did not come up');
    }
    await delay(POLL_MS);
  }
  return { host, close };
}

function answers(host: string): Promise<boolean> {
  return fetch(`http://${host}/v2/`).then(
    ({ ok }) => ok,
    () => false,
  );
}
