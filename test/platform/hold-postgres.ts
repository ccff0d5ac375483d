import { startEmbeddedPostgres } from '../../src/dev/embedded-postgres.ts';

// Run as its own process: starts the server of the named folder, says so, and waits to be killed.
const [directory = ''] = process.argv.slice(2);
const { pid, port } = await startEmbeddedPostgres({ directory, durable: false });
process.stdout.write(`${JSON.stringify({ pid, port })}\n`);
process.on('disconnect', () => process.exit()); // this listener also keeps the process alive
