import { openAiAnswer, openAiChunk, sse } from '../../harness/vendors/openai-wire.ts';
import type { VendorScript, VendorStep } from '../attack-case.ts';

/** How vendors write: the sound forms that hostile ones are made from. */

export const jsonHead = (length: number, more = ''): string =>
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n${more}\r\n`;

export const streamHead = (more = ''): string =>
  `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n${more}\r\n`;

export function completionJson(text: string): string {
  return JSON.stringify(openAiAnswer('gpt-test', { text: [text] }));
}

export function chunkEvent(delta: Readonly<Record<string, unknown>>, finish: string | null = null): string {
  return sse(openAiChunk('gpt-test', delta, finish));
}

export function write(bytes: Buffer | string, pieceBytes = 64 * 1024, pauseMs = 0): VendorStep {
  return { kind: 'write', bytes: Buffer.from(bytes), pieceBytes, pauseMs };
}

/** A whole JSON answer with a true length. */
export function jsonAnswer(body: Buffer): VendorScript {
  return { begins: 'whole', sound: true, steps: [write(jsonHead(body.length)), write(body)] };
}

const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };

export const lastEvents = (): string =>
  chunkEvent({}, 'stop') + sse({ ...openAiChunk('gpt-test', {}), choices: [], usage }) + sse('[DONE]');

/** A whole stream around these steps, ended by closing the connection. */
export function streamAnswer(steps: readonly VendorStep[]): VendorScript {
  return {
    begins: 'whole',
    sound: true,
    steps: [
      write(streamHead() + chunkEvent({ role: 'assistant', content: '' })),
      ...steps,
      write(lastEvents()),
      { kind: 'end' },
    ],
  };
}
