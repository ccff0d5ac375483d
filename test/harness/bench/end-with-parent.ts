/** Preloaded into the gateway: a benchmark that was killed leaves nothing running. */
process.once('disconnect', () => process.exit(1));
process.channel?.unref();
