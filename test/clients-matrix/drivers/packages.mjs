/** Loaded before a driver: what it imports by name comes from the folder that GW_CLIENT_PACKAGES names. */
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';

const drivers = new URL('.', import.meta.url).href;
const packages = pathToFileURL(`${process.env.GW_CLIENT_PACKAGES}/package.json`).href;

registerHooks({
  resolve(specifier, context, next) {
    const isOurs = context.parentURL?.startsWith(drivers) === true && /^[@a-z]/.test(specifier);
    return next(
      specifier,
      isOurs && !specifier.startsWith('node:') ? { ...context, parentURL: packages } : context,
    );
  },
});
