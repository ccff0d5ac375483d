import type { Command } from 'commander';
import { prepareGateway } from '../gateway-process.ts';
import { readSettings } from '../settings.ts';
import { addCommand } from './command.ts';
import { runUntilSignal } from './until-signal.ts';

async function serve(): Promise<void> {
  const settings = readSettings();
  await runUntilSignal(async () => {
    const startGateway = await prepareGateway(settings);
    const gateway = await startGateway(settings);
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
