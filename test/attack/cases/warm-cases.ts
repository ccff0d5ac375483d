import type { AttackCase } from '../attack-case.ts';
import { plainSending } from '../attack-case.ts';
import { completionJson, jsonAnswer } from './wire-form.ts';

const mib = 1024 * 1024;

/**
 * What any client may do, and with it the memory that V8 and the allocator keep once they have had it: small and
 * large bodies, whole and in small chunks, JSON and streams, both wire forms.
 */
export function warmCase(seed: number): AttackCase {
  const stream = seed % 2 === 0;
  const large = seed % 30 === 0;
  const model = seed % 3 === 0 ? 'anthropic:claude-test' : 'openai:gpt-test';
  return {
    sending: {
      ...plainSending,
      headers: { 'x-gateway-override-model': model },
      body: { kind: 'chat', fields: stream ? { stream: true } : {}, totalBytes: large ? 2 * mib : 0 },
      framing: seed % 5 === 0 ? 'chunked' : 'length',
      pieceBytes: large ? 64 : 64 * 1024,
    },
    reading: { kind: 'all' },
    vendor:
      large && !stream && seed % 3 !== 0
        ? jsonAnswer(Buffer.from(completionJson('word '.repeat(mib / 5))))
        : null,
    statuses: [200, 503],
  };
}
