/**
 * Attribute names. `gen_ai.*` follows the OpenTelemetry GenAI conventions as of version 1.41 (all in status
 * Development), `http.*`, `server.*`, `url.*` and `error.type` the stable HTTP conventions; `gw.*` is ours.
 */
export const schemaUrl = 'https://opentelemetry.io/schemas/1.41.0';

export const names = {
  method: 'http.request.method',
  route: 'http.route',
  status: 'http.response.status_code',
  resendCount: 'http.request.resend_count',
  urlPath: 'url.path',
  urlScheme: 'url.scheme',
  serverAddress: 'server.address',
  serverPort: 'server.port',
  errorType: 'error.type',

  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  requestStream: 'gen_ai.request.stream',
  responseId: 'gen_ai.response.id',
  responseModel: 'gen_ai.response.model',
  finishReasons: 'gen_ai.response.finish_reasons',
  firstChunkSeconds: 'gen_ai.response.time_to_first_chunk',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cachedInputTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheWriteTokens: 'gen_ai.usage.cache_creation.input_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning.output_tokens',

  mode: 'gw.mode',
  requestId: 'gw.request_id',
  residencyRequested: 'gw.residency.requested',
  residencyActual: 'gw.residency.actual',
  attempts: 'gw.attempts',
  cacheResult: 'gw.cache.result',
  costMicroUsd: 'gw.cost_microusd',
  configGeneration: 'gw.config.generation',
  stream: 'gw.stream',
  outcome: 'gw.outcome',
  attemptNumber: 'gw.attempt.number',
  attemptOutcome: 'gw.attempt.outcome',
  fallbackReason: 'gw.attempt.fallback_reason',
  droppedFields: 'gw.attempt.dropped_fields',
  retryAfterMs: 'gw.retry_after_ms',
  skippedEvent: 'candidate.skipped',
  skipProvider: 'gw.candidate.provider',
  skipModel: 'gw.candidate.model',
  skipReason: 'gw.skip.reason',
  skipDetail: 'gw.skip.detail',
} as const;
