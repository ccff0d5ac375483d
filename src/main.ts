#!/usr/bin/env node
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { checkConfig } from './commands/check-config.ts';
import { serveDemo } from './commands/demo.ts';
import { newServiceKey } from './core/account/service-key.ts';
import { openApiDocument } from './http/openapi.ts';
import { forgetPostgresVariables, readSettings, SettingsError } from './settings.ts';
import { startTracing } from './telemetry/tracing.ts';

const usage = `Usage: model-gateway [command]

  serve                 run the gateway (default)
  migrate               bring the database schema up to date
  reseal                move every stored key to the newest sealing key
  new-key               print a new service key, for a sidecar's Secret
  check-config FILE     check a tables document and print the first problems
  openapi               print the OpenAPI description
  demo [PORT] [HOST]    run the demo model server
  wait SECONDS          sleep, for preStop hooks without a shell
`;

/** After a stop signal and the drain, whatever still hangs is left behind. */
const stopGraceMs = 15_000;

/** Runs until a signal; a second one hurries the stop. */
async function runUntilSignal(
  start: () => Promise<{ close(): Promise<void>; stopLimitMs: number }>,
): Promise<number> {
  let running: { close(): Promise<void>; stopLimitMs: number } | null = null;
  const stopped = new Promise<number>((resolve) => {
    const stop = (code: number): void => {
      setTimeout(() => process.exit(1), (running?.stopLimitMs ?? 0) + stopGraceMs).unref();
      if (running === null) process.exit(code);
      running.close().then(
        () => resolve(code),
        () => resolve(1),
      );
    };
    process.on('SIGTERM', () => stop(0));
    process.on('SIGINT', () => stop(0));
    // A state nobody thought of is not one to go on from: write what is left, then end.
    process.on('uncaughtException', (error) => {
      process.stderr.write(`uncaught: ${error.stack}\n`);
      stop(1);
    });
  });
  running = await start();
  return stopped;
}

async function serve(): Promise<number> {
  const settings = readSettings();
  return runUntilSignal(async () => {
    // Before the rest is imported: auto-instrumentation patches modules as they are loaded.
    const tracing = await startTracing(settings.tracing);
    const { startGateway } = await import('./wiring/app.ts');
    const gateway = await startGateway(settings, tracing);
    return { close: () => gateway.close(), stopLimitMs: settings.drainDelayMs + settings.drainMs };
  });
}

async function run(command: string, args: readonly string[]): Promise<number> {
  switch (command) {
    case 'serve':
      return serve();
    case 'migrate':
    case 'reseal': {
      const { databaseCommands } = await import('./commands/database.ts');
      return databaseCommands[command](readSettings(), process.stdout);
    }
    case 'new-key':
      process.stdout.write(`${newServiceKey(randomBytes(32))}\n`);
      return 0;
    case 'check-config':
      if (args[0] === undefined) throw new SettingsError('check-config needs the path of a tables document.');
      return checkConfig(args[0], process.stdout);
    case 'openapi':
      process.stdout.write(`${JSON.stringify(openApiDocument(), null, 2)}\n`);
      return 0;
    case 'demo':
      return runUntilSignal(async () => ({ close: await serveDemo(args, process.stdout), stopLimitMs: 0 }));
    case 'wait':
      await sleep(Math.max(0, Number(args[0] ?? 0)) * 1000);
      return 0;
    case 'help':
    case '--help':
    case '-h':
      process.stdout.write(usage);
      return 0;
    default:
      process.stderr.write(usage);
      return 2;
  }
}

forgetPostgresVariables();
const [command = 'serve', ...args] = process.argv.slice(2);
try {
  process.exitCode = await run(command, args);
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(`model-gateway ${command}: ${message}\n`);
  process.exitCode = 1;
}
// Nothing is left to do; what a library keeps open must not keep the process.
process.exit();
