import type { Command } from 'commander';
import { listenFailure } from '../core/net/listen-failure.ts';
import { addCommand, numberWithin } from './command.ts';
import { CommandError } from './exit-codes.ts';
import { runUntilSignal } from './until-signal.ts';

/** As its usage has them. */
const argumentNames = { portName: '[port]', hostName: '[host]' };

async function serveDemo(port: number, host: string): Promise<void> {
  const { startDemoServer } = await import('../demo/demo-server.ts');
  await runUntilSignal(async () => {
    const server = await startDemoServer({ port, host }).catch((error: unknown) => {
      throw new CommandError('failed', listenFailure({ port, host, ...argumentNames }, error));
    });
    process.stdout.write(`demo model server on ${server.url}\n`);
    return { close: () => server.close(), stopLimitMs: 0 };
  });
}

export function addDemo(program: Command): void {
  addCommand(program, {
    name: 'demo',
    summary: 'run the demo model server',
    details: 'It answers any key in the OpenAI shape, as JSON and as a stream.',
    example: 'model-gateway demo 8081',
  })
    .argument('[port]', 'where it listens; 0: a free one', numberWithin(0, 65_535, 'whole number'), 8081)
    .argument('[host]', 'its address', '127.0.0.1')
    .action(serveDemo);
}
