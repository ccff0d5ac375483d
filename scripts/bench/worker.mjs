/** The child's end of `startWorker`: says where it listens, if it does, then answers one message at a time. */
export function serveParent(server, answer) {
  process.once('disconnect', () => process.exit(1)); // the benchmark was killed
  process.on('message', async (message) => {
    try {
      process.send({ result: await answer(message) });
    } catch (error) {
      process.send({ problem: error.message });
    }
  });
  process.send({ result: server === null ? null : `http://127.0.0.1:${server.address().port}` });
}
