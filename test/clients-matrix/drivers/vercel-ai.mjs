/** The Vercel AI SDK, with the provider that the first argument names. */
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, isStepCount, jsonSchema, Output, RetryError, streamText, tool } from 'ai';
import { baseUrl, keyOf, questions, retriesOf, serve } from './serve.mjs';

const chatModel = {
  openai: (call) => createOpenAI({ apiKey: keyOf(call), baseURL: baseUrl }).chat(call.model),
  'openai-compatible': (call) =>
    createOpenAICompatible({
      name: 'gateway',
      apiKey: keyOf(call),
      baseURL: baseUrl,
      includeUsage: true,
      supportsStructuredOutputs: true,
      // Else the SDK fetches pictures itself and sends their bytes.
      supportedUrls: () => ({ 'image/*': [/^https?:\/\//] }),
    })(call.model),
}[process.argv[2]];

function toolSet(execute) {
  const entry = ({ name, description, parameters }) => [
    name,
    tool({ description, inputSchema: jsonSchema(parameters), ...(execute ? { execute } : {}) }),
  ];
  return Object.fromEntries(questions.tools.map(entry));
}

const report = Output.object({ schema: jsonSchema(questions.schema), name: 'report' });

function options(call, additions = {}) {
  const prompt = 'messages' in additions ? {} : { prompt: questions.prompt };
  const sampling = call.temperature === undefined ? {} : { temperature: call.temperature };
  return {
    model: chatModel(call),
    headers: call.headers,
    ...retriesOf(call),
    ...prompt,
    ...sampling,
    ...additions,
  };
}

function view({ text, toolCalls, finishReason, usage }, block) {
  return {
    text,
    // In the order in which their arguments were complete.
    toolCalls: toolCalls
      .map((made) => ({ id: made.toolCallId, name: made.toolName, input: made.input }))
      .sort((a, b) => (a.id < b.id ? -1 : 1)),
    finish: finishReason,
    usage: [usage.inputTokens, usage.outputTokens, usage.totalTokens],
    gateway: block,
  };
}

async function ask(call, additions) {
  const include = { include: { responseBody: true } };
  const result = await generateText(options(call, { ...additions, ...include }));
  return { ...view(result, result.response.body?.gateway), warnings: result.warnings, result };
}

async function asked(call, additions) {
  const { result: _result, ...seen } = await ask(call, additions);
  return seen;
}

async function streamed(call, additions, progress) {
  let failure;
  const result = streamText(
    options(call, {
      ...additions,
      include: { rawChunks: true },
      onError: ({ error }) => {
        failure ??= error;
      },
    }),
  );
  const whole = { text: '', toolCalls: [], finishReason: null, usage: {} };
  let pieces = 0;
  let block;
  for await (const part of result.stream) {
    if (part.type === 'text-delta') {
      pieces += 1;
      whole.text += part.text;
      progress.text += part.text;
    } else if (part.type === 'tool-call') whole.toolCalls.push(part);
    else if (part.type === 'raw') block = part.rawValue.choices?.[0]?.delta?.gateway ?? block;
    else if (part.type === 'error') failure ??= part.error;
    else if (part.type === 'finish') {
      whole.finishReason = part.finishReason;
      whole.usage = part.totalUsage;
    }
  }
  if (failure !== undefined) throw failure;
  return { ...view(whole, block), pieces };
}

function picture(data) {
  const content = [
    { type: 'text', text: questions.imagePrompt },
    { type: 'file', mediaType: 'image/png', data },
  ];
  return { messages: [{ role: 'user', content }] };
}

const actions = {
  chat: (call) => asked(call),
  stream: (call, progress) => streamed(call, {}, progress),
  tools: (call) => asked(call, { tools: toolSet() }),
  'stream-tools': (call, progress) => streamed(call, { tools: toolSet() }, progress),
  'tool-loop': async (call) => {
    const execute = () => questions.toolResult;
    const seen = await asked(call, { tools: toolSet(execute), stopWhen: isStepCount(3) });
    return { ...seen, usage: null };
  },
  image: (call) => asked(call, picture(Buffer.from(questions.image, 'base64'))),
  'image-url': (call) => asked(call, picture(new URL(questions.imageUrl))),
  json: async (call) => {
    const { result, ...seen } = await ask(call, { output: report });
    return { ...seen, object: result.output };
  },
  'stream-json': async (call, progress) => {
    const seen = await streamed(call, { output: report }, progress);
    return { ...seen, object: JSON.parse(seen.text) };
  },
  'json-by-tool': async (call) => {
    const tools = { report: tool({ inputSchema: jsonSchema(questions.schema) }) };
    const seen = await asked(call, { tools, toolChoice: { type: 'tool', toolName: 'report' } });
    return { ...seen, object: seen.toolCalls[0].input };
  },
  cancel: async (call) => {
    const leaving = new AbortController();
    const result = streamText(options(call, { abortSignal: leaving.signal, onError: () => {} }));
    let text = '';
    for await (const part of result.stream) {
      if (part.type === 'text-delta') text += part.text;
      if (text.includes('t1')) leaving.abort();
    }
    return { text };
  },
};

await serve(actions, (given) => {
  const error = RetryError.isInstance(given) ? given.lastError : given;
  // A refused call keeps the body, an error inside a stream its fields.
  const facts = error.data?.error ?? error;
  return {
    class: error.name?.replace(/^AI_/, ''),
    status: error.statusCode ?? null,
    type: facts.type ?? null,
    code: facts.code ?? null,
    message: error.message ?? String(error),
    retryAfter: error.responseHeaders?.['retry-after'] ?? null,
    requestId: error.responseHeaders?.['x-request-id'] ?? null,
  };
});
