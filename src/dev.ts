import { join, resolve } from 'node:path';
import type { ListenAddress } from './core/net/listen-failure.ts';
import { adminAddress, apiAddress, listenFailure } from './core/net/listen-failure.ts';
import type { DemoServer } from './demo/demo-server.ts';
import { startDemoServer } from './demo/demo-server.ts';
import { makeUsableDirectory } from './dev/data-directory.ts';
import { ensureDemoAccount, readDemoState, writeDemoState } from './dev/demo-account.ts';
import { startEmbeddedPostgres } from './dev/embedded-postgres.ts';
import { isPortFree } from './dev/free-port.ts';
import { waitUntilReady } from './dev/readiness.ts';
import { keepSealingKey } from './dev/sealing-key.ts';
import { StartError } from './dev/start-error.ts';
import { welcomeText } from './dev/welcome.ts';
import type { StartGateway } from './gateway-process.ts';
import { prepareGateway } from './gateway-process.ts';
import type { Settings } from './settings.ts';
import { forgetPostgresVariables, readSettings, SettingsError } from './settings.ts';
import { endAfter, isByBug, listenForStop } from './stop-signals.ts';

/** What `npm start` runs. Without DATABASE_URL: an embedded Postgres, a demo model server and a demo user. */

/**
 * The terminal gives Ctrl-C to npm, the launcher and us, and each hands it on: what comes so soon is the same one. A
 * later signal ends the process at once; Postgres gets its stop signal on exit.
 */
const sameKeyPressMs = 500;
/** 128 + SIGINT, as shells count. */
const interruptedCode = 130;

/** Undone in reverse order when we stop, whatever the reason. */
type Cleanups = (() => Promise<void>)[];

async function main(): Promise<void> {
  const stop = new AbortController();
  const cleanups: Cleanups = [];
  stopWithTerminal(stop);
  forgetPostgresVariables();
  try {
    const settings = readSettings();
    setStopLimit(stop.signal, settings);
    await refuseTakenPorts(settings);
    const embedded = settings.databaseUrl === null && settings.profile === 'server';
    const startGateway = await prepareGateway(settings);
    await (embedded
      ? startDemo(settings, startGateway, cleanups, stop.signal)
      : startPlain(settings, startGateway, cleanups));
    if (!stop.signal.aborted) await new Promise((stopped) => stop.signal.addEventListener('abort', stopped));
  } catch (error) {
    if (!stop.signal.aborted) fail(error); // else it is only the interrupted step
  }
  if (isByBug(stop.signal)) process.exitCode = 1;
  for (const cleanup of cleanups.reverse()) await cleanup().catch(fail);
  process.exit();
}

function fail(error: unknown): void {
  process.exitCode = 1;
  process.stderr.write(`${oneLine(error)}\n`);
}

async function startPlain(settings: Settings, startGateway: StartGateway, cleanups: Cleanups): Promise<void> {
  const gateway = await startGateway(settings);
  cleanups.push(() => gateway.close());
  process.stdout.write(`Model Gateway runs on ${gateway.url}. Ctrl-C stops it.\n`);
}

async function startDemo(
  settings: Settings,
  startGateway: StartGateway,
  cleanups: Cleanups,
  signal: AbortSignal,
): Promise<void> {
  const dataDirectory = resolve(settings.dataDir);
  makeUsableDirectory(dataDirectory);
  const sealingKeys =
    settings.sealingKeys.length > 0 ? settings.sealingKeys : [keepSealingKey(dataDirectory)];

  const databaseUrl = await startDatabase(dataDirectory, cleanups, signal);
  signal.throwIfAborted();

  const statePath = join(dataDirectory, 'demo.json');
  const kept = readDemoState(statePath);
  const demo = await startDemoOnKeptPort(kept?.demo_port ?? 0);
  cleanups.push(() => demo.close());

  const demoSettings = { ...settings, databaseUrl, databaseDirectUrl: databaseUrl, sealingKeys };
  const gateway = await startGateway(demoSettings);
  cleanups.push(() => gateway.close());
  await waitUntilReady(gateway.adminUrl, signal);

  const user = await ensureDemoAccount(gateway.url, demo.url, kept);
  writeDemoState(statePath, { ...user, demo_port: Number(new URL(demo.url).port) });
  process.stdout.write(welcomeText(gateway.url, gateway.adminUrl, user.api_key, process.uptime() * 1000));
}

async function startDatabase(
  dataDirectory: string,
  cleanups: Cleanups,
  signal: AbortSignal,
): Promise<string> {
  // Not before tracing is there, which patches the driver.
  const { claimDatabase, InUseError } = await import('./dev/gateway-database.ts');
  const server = await startEmbeddedPostgres(
    { directory: join(dataDirectory, 'postgres'), durable: true },
    signal,
  );
  try {
    const database = await claimDatabase(server);
    cleanups.push(() => server.stop(), database.release);
    if (!server.home.startsWith(dataDirectory)) {
      process.stdout.write(`The database lives in ${server.home}: its user cannot reach ${dataDirectory}.\n`);
    }
    return database.url;
  } catch (error) {
    if (error instanceof InUseError) server.leave();
    else await server.stop();
    throw error;
  }
}

/** The registered key names the port, so the same one saves a new registration. */
async function startDemoOnKeptPort(port: number): Promise<DemoServer> {
  const host = '127.0.0.1';
  return await startDemoServer({ host, port }).catch(() => startDemoServer({ host, port: 0 }));
}

async function refuseTakenPorts(settings: Settings): Promise<void> {
  for (const address of [apiAddress(settings), adminAddress(settings)]) {
    const { host, port } = address;
    const isFree =
      port === 0 || (await isPortFree(host, port).catch((error: unknown) => refuse(address, error)));
    if (!isFree) throw portInUse(address);
  }
}

function refuse(address: ListenAddress, error: unknown): never {
  throw new StartError(listenFailure(address, error));
}

function portInUse({ portName, host, port }: ListenAddress): StartError {
  return new StartError(
    `Port ${port} on ${host} is in use: stop its owner, or set ${portName} to another one.`,
  );
}

function stopWithTerminal(stop: AbortController): void {
  listenForStop(stop, {
    signals: ['SIGINT', 'SIGTERM', 'SIGHUP'],
    sameStopMs: sameKeyPressMs,
    onFurther: (byBug) => {
      if (!byBug) process.exit(interruptedCode);
    },
  });
  process.on('disconnect', () => stop.abort()); // the launcher was killed
  process.stdout.on('error', () => {}); // the reader left (npm start | head); we go on
}

/** Whatever hangs, the process ends; Postgres gets its stop signal on exit. */
function setStopLimit(signal: AbortSignal, settings: Settings): void {
  signal.addEventListener('abort', () => endAfter(settings.drainDelayMs + settings.drainMs));
}

function oneLine(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof StartError || error instanceof SettingsError) return message;
  const { code } = error as NodeJS.ErrnoException;
  return `Model Gateway cannot start: ${message.split('\n')[0] || code}`;
}

await main();
