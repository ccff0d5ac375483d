/** The official OpenAI client for Node. */
import OpenAI from 'openai';
import { baseUrl, keyOf, openAiError, questions, retriesOf, serve } from './serve.mjs';

const tools = questions.tools.map((tool) => ({ type: 'function', function: tool }));
const format = {
  type: 'json_schema',
  json_schema: { name: 'report', strict: true, schema: questions.schema },
};

function client(call) {
  return new OpenAI({
    apiKey: keyOf(call),
    baseURL: baseUrl,
    defaultHeaders: call.headers,
    ...retriesOf(call),
  });
}

function body(call, additions = {}) {
  const messages = [{ role: 'user', content: questions.prompt }];
  const sampling = call.temperature === undefined ? {} : { temperature: call.temperature };
  return { model: call.model, messages, ...sampling, ...additions };
}

function view(completion, block = completion.gateway) {
  const [choice] = completion.choices;
  const { usage } = completion;
  return {
    text: choice.message.content ?? '',
    toolCalls: (choice.message.tool_calls ?? []).map((made) => ({
      id: made.id,
      name: made.function.name,
      input: JSON.parse(made.function.arguments),
    })),
    finish: choice.finish_reason,
    usage: usage ? [usage.prompt_tokens, usage.completion_tokens, usage.total_tokens] : null,
    gateway: block,
  };
}

async function ask(call, additions) {
  return view(await client(call).chat.completions.create(body(call, additions)));
}

async function streamed(call, additions, progress) {
  const usage = { stream_options: { include_usage: true } };
  const runner = client(call).chat.completions.stream(body(call, { ...usage, ...additions }));
  let pieces = 0;
  runner.on('content', (piece) => {
    pieces += 1;
    progress.text += piece;
  });
  const final = await runner.finalChatCompletion();
  return { ...view(final, final.choices[0].message.gateway), pieces };
}

function picture(url) {
  const content = [
    { type: 'text', text: questions.imagePrompt },
    { type: 'image_url', image_url: { url } },
  ];
  return { messages: [{ role: 'user', content }] };
}

/** Two rounds: the calls are answered and the final answer is read. */
async function converse(call) {
  const { chat } = client(call);
  const first = await chat.completions.create(body(call, { tools }));
  const { message } = first.choices[0];
  const results = message.tool_calls.map((made) => ({
    role: 'tool',
    tool_call_id: made.id,
    content: questions.toolResult,
  }));
  const { messages } = body(call);
  return view(
    await chat.completions.create(body(call, { tools, messages: [...messages, message, ...results] })),
  );
}

const actions = {
  chat: (call) => ask(call),
  stream: (call, progress) => streamed(call, {}, progress),
  tools: (call) => ask(call, { tools }),
  'stream-tools': (call, progress) => streamed(call, { tools }, progress),
  'tool-loop': converse,
  image: (call) => ask(call, picture(`data:image/png;base64,${questions.image}`)),
  'image-url': (call) => ask(call, picture(questions.imageUrl)),
  json: async (call) => {
    const completion = await client(call).chat.completions.parse(body(call, { response_format: format }));
    return { ...view(completion), object: completion.choices[0].message.parsed };
  },
  'stream-json': async (call, progress) => {
    const seen = await streamed(call, { response_format: format }, progress);
    return { ...seen, object: JSON.parse(seen.text) };
  },
  'json-by-tool': async (call) => {
    const tool = { type: 'function', function: { name: 'report', parameters: questions.schema } };
    const choice = { type: 'function', function: { name: 'report' } };
    const seen = await ask(call, { tools: [tool], tool_choice: choice });
    return { ...seen, object: seen.toolCalls[0].input };
  },
  cancel: async (call) => {
    const stream = await client(call).chat.completions.create(body(call, { stream: true }));
    let text = '';
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      if (text.includes('t1')) stream.controller.abort();
    }
    return { text };
  },
};

await serve(actions, openAiError);
