import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { skipWithout } from '../harness/stage/tools.ts';
import type { Driver } from './driver.ts';
import { startDriver } from './driver.ts';

/** A client, and the words in which it tells its user what every client is told. */
export interface Client {
  readonly name: string;
  readonly packages: readonly string[];
  readonly language: 'node' | 'python';
  /** The driver and its arguments. */
  readonly driver: readonly [file: string, ...args: string[]];
  /** Its words for a whole text and for tool calls. */
  readonly finish: { readonly text: string; readonly tools: string };
  /** False: the `gateway` block is in nothing that it hands out. */
  readonly showsBlock: boolean;
  /** The class of its errors, by status; `broken` for a stream that breaks off. */
  readonly errors: Readonly<Record<401 | 422 | 429 | 503 | 'broken', string>>;
}

const drivers = join(import.meta.dirname, 'drivers');

function setting(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error('Run "npm run test:clients".');
  return value;
}

/** The version of a package that is installed, or, for Python, pinned to be. */
function versionOf(client: Client, name: string): string {
  if (client.language === 'python') {
    const pins = readFileSync(join(import.meta.dirname, 'requirements.txt'), 'utf8').split('\n');
    return pins.find((pin) => pin.startsWith(`${name}==`))?.split('==')[1] ?? 'unknown';
  }
  const file = join(setting('GW_CLIENT_PACKAGES'), 'node_modules', name, 'package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

/** The packages of a client with their exact versions. */
export function versionsOf(client: Client): string {
  return client.packages.map((name) => `${name} ${versionOf(client, name)}`).join(', ');
}

/** Runs a client against a gateway. To be called in a test or `beforeEach`: without Python it is skipped. */
export function startClient(client: Client, url: string, key: string): Driver {
  const [file, ...args] = client.driver;
  const settings = { GATEWAY_URL: url, GATEWAY_KEY: key };
  if (client.language === 'python') {
    skipWithout('python3', `${client.name} runs on it`);
    return startDriver(setting('GW_CLIENT_PYTHON'), [join(drivers, file), ...args], settings);
  }
  const hooks = ['--import', join(drivers, 'packages.mjs')];
  return startDriver(process.execPath, [...hooks, join(drivers, file), ...args], {
    ...settings,
    GW_CLIENT_PACKAGES: setting('GW_CLIENT_PACKAGES'),
  });
}
