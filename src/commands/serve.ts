import type { Command } from 'commander';
import { markInTime } from '../heap-limit.ts';
import { readSettings } from '../settings.ts';
import { addCommand } from './command.ts';
import { runUntilSignal } from './until-signal.ts';

async function serve(): Promise<void> {
  const settings = readSettings();
  markInTime();
  await runUntilSignal(async () => {
    // Before the rest is imported: auto-instrumentation patches modules as they are loaded.
    const { startTracing } = await import('../telemetry/tracing.ts');
    const tracing = await startTracing(settings.tracing);
    const { startGateway } = await import('../wiring/app.ts');
    const gateway = await startGateway(settings, tracing);
    return { close: () => gateway.close(), stopLimitMs: settings.drainDelayMs + settings.drainMs };
  });
}

export function addServe(program: Command): void {
  addCommand(program, {
    name: 'serve',
    summary: 'run the gateway (default)',
    details: 'SIGTERM drains it: open streams may end, then the process does.',
    example: `DATABASE_URL=postgres://… GW_SEALING_KEYS="v1:$(openssl rand -base64 32)" model-gateway`,
  }).action(serve);
}
