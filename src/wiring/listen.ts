import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { OwnEndpoints } from '../adapters/upstream/own-endpoints.ts';
import type { ListenAddress } from '../core/net/listen-failure.ts';
import { listenFailure } from '../core/net/listen-failure.ts';
import { SettingsError } from '../settings.ts';

/**
 * Listens and returns the address; it joins the addresses no user may reach through us. Throws SettingsError where
 * nothing can listen there.
 */
export async function listen(
  app: FastifyInstance,
  address: ListenAddress,
  own: Pick<OwnEndpoints, 'addListener'>,
): Promise<string> {
  // What a hook of the start throws is none of the address.
  await app.ready();
  try {
    await app.listen({ host: address.host, port: address.port });
  } catch (error) {
    throw new SettingsError(listenFailure(address, error), { cause: error });
  }
  const bound = app.server.address() as AddressInfo;
  own.addListener({ address: bound.address, port: bound.port });
  const shown = bound.address === '0.0.0.0' || bound.address === '::' ? '127.0.0.1' : bound.address;
  return `http://${shown.includes(':') ? `[${shown}]` : shown}:${bound.port}`;
}
