import { startDemoServer } from '../demo/demo-server.ts';

const defaultPort = 8081;

/** `model-gateway demo [port] [host]`: the demo model server alone. Resolves with what stops it. */
export async function serveDemo(
  args: readonly string[],
  out: { write(text: string): unknown },
): Promise<() => Promise<void>> {
  const server = await startDemoServer({
    port: args[0] === undefined ? defaultPort : Number(args[0]),
    host: args[1] ?? '127.0.0.1',
  });
  out.write(`demo model server on ${server.url}\n`);
  return () => server.close();
}
