import type { Provider } from '../provider.ts';
import type { Dialect, DialectOf } from './dialect.ts';
import { usualDialect } from './dialect.ts';
import { readCompatibleError } from './error.ts';
import { lackedWithoutSampling, translateCompatibleRequest } from './request.ts';
import { translateCompatibleAnswer } from './response.ts';
import { CompatibleStream } from './stream.ts';

/** A provider that speaks the OpenAI Chat Completions format, with the given differences. */
export function compatibleProvider(differences: DialectOf): Provider {
  const dialect: Dialect = { ...usualDialect, ...differences };
  return {
    name: dialect.name,
    defaultBaseUrl: dialect.defaultBaseUrl,
    authHeaders: dialect.authHeaders,
    modelsRequest: { path: dialect.modelsPath, headers: {} },
    lacks: (facts) =>
      facts.sampling || dialect.verbatim
        ? dialect.lacks(facts)
        : [...dialect.lacks(facts), lackedWithoutSampling],
    translateRequest: (request, context) => translateCompatibleRequest(dialect, request, context),
    translateAnswer: translateCompatibleAnswer,
    streamTranslator: (context) => new CompatibleStream(context),
    readError: (status, headers, body, nowMs) => readCompatibleError(dialect, status, headers, body, nowMs),
  };
}
