import type { Candidate } from '../core/candidate.ts';
import { isUserServer } from '../core/provider-name.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import type { Secret } from '../core/secret/secret.ts';
import type { Provider } from '../providers/provider.ts';
import type { ChatDeps } from './chat-deps.ts';
import type { ProviderEndpoint } from './endpoints.ts';
import type { UpstreamCall } from './ports.ts';

/** A key in plaintext, for one attempt or one check of it, and the only place it may go. */
export interface OpenedKey {
  readonly kind: 'opened';
  readonly endpoint: ProviderEndpoint;
  readonly secret: Secret;
}

/** A key that cannot be used, in words for its owner: nobody is asked. */
export interface UnusableKey {
  readonly kind: 'unreadable-address' | 'unopened';
  readonly reason: string;
}

const unreadableAddress: UnusableKey = {
  kind: 'unreadable-address',
  reason: 'The stored address of this key cannot be read; register it again.',
};
const unopened: UnusableKey = {
  kind: 'unopened',
  reason: 'The stored provider key cannot be opened; register it again.',
};

/** Opens the key of a candidate. Operators hear of one that does not open, and for whom it was needed. */
export function openCandidate(
  candidate: Pick<Candidate, 'provider' | 'key'>,
  asker: Pick<ChatCall, 'userId' | 'requestId'>,
  deps: Pick<ChatDeps, 'endpointOf' | 'openKey' | 'reportUnopenedKey'>,
): OpenedKey | UnusableKey {
  const endpoint = deps.endpointOf(candidate);
  if (endpoint === null) return unreadableAddress;
  const secret = deps.openKey(candidate.key);
  if (secret !== null) return { kind: 'opened', endpoint, secret };
  deps.reportUnopenedKey(candidate.key.id, asker);
  return unopened;
}

/** What is asked of a vendor; `path` and `headers` are the vendor's, without its address and the credentials. */
export type Question = Pick<
  UpstreamCall,
  'method' | 'path' | 'headers' | 'body' | 'residency' | 'residencyBound' | 'userId'
>;

/** The question as it is sent. The credentials come last: nothing replaces them. */
export function upstreamCallOf(
  { endpoint, secret }: OpenedKey,
  provider: Provider,
  question: Question,
): UpstreamCall {
  return {
    provider: provider.name,
    origin: endpoint.origin,
    method: question.method,
    path: endpoint.prefix + question.path,
    headers: {
      ...question.headers,
      'accept-encoding': 'identity',
      ...provider.authHeaders(secret.reveal()),
    },
    body: question.body,
    residency: question.residency,
    residencyBound: question.residencyBound,
    userAddress: isUserServer(provider.name),
    userId: question.userId,
  };
}
