/** The parts of a chat request that the demo model reads; everything else is ignored. */
export interface DemoRequest {
  readonly model: string;
  readonly prompt: string;
  /** How much of the conversation there was, in words. */
  readonly promptWords: number;
  readonly maxTokens: number;
  readonly stream: boolean;
  readonly streamUsage: boolean;
}

/** One word is one token here: honest enough for a demo, and usage adds up. */
export interface DemoAnswer {
  /** Each with its leading space, so that joining them gives the text. */
  readonly words: readonly string[];
  readonly finishReason: 'stop' | 'length';
  readonly usage: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly total_tokens: number;
  };
}

/** Quoting more would only make the answer long. */
const quoteCharacters = 200;

/** Reads a request body, or null when it is no chat request. */
export function readDemoRequest(body: unknown): DemoRequest | null {
  if (!isObject(body) || !Array.isArray(body['messages'])) return null;
  const texts = body['messages'].filter(isObject).map((message) => ({
    role: message['role'],
    text: contentText(message['content']),
  }));
  const limit = body['max_completion_tokens'] ?? body['max_tokens'];
  const options = body['stream_options'];
  return {
    model: typeof body['model'] === 'string' ? body['model'] : 'demo',
    prompt: texts.findLast((message) => message.role === 'user')?.text ?? '',
    promptWords: texts.reduce((sum, message) => sum + splitWords(message.text).length, 0),
    maxTokens: typeof limit === 'number' ? limit : Number.POSITIVE_INFINITY,
    stream: body['stream'] === true,
    streamUsage: isObject(options) && options['include_usage'] === true,
  };
}

/** The answer to a request; the same request always gets the same words. */
export function composeDemoAnswer(request: DemoRequest): DemoAnswer {
  const quote = request.prompt.replace(/\s+/g, ' ').trim().slice(0, quoteCharacters);
  const all = splitWords(
    `You said: "${quote}". This answer comes from the demo model that starts together with the gateway. ` +
      'It went the whole way: your service key, your stored provider key, routing, streaming, cost and log. ' +
      'Register a key of a real provider, and the same request gets a real answer.',
  );
  const words = all.slice(0, Math.max(1, request.maxTokens));
  return {
    words,
    finishReason: words.length < all.length ? 'length' : 'stop',
    usage: {
      prompt_tokens: request.promptWords,
      completion_tokens: words.length,
      total_tokens: request.promptWords + words.length,
    },
  };
}

function splitWords(text: string): string[] {
  return text.match(/\s*\S+/g) ?? [];
}

/** A message's text: a string, or the text parts of an array. */
function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .filter(isObject)
    .map((part) => (typeof part['text'] === 'string' ? part['text'] : ''))
    .join(' ');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
