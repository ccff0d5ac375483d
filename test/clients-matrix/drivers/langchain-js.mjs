/** LangChain for JavaScript. */
import { HumanMessage, ToolMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { baseUrl, keyOf, openAiError, questions, retriesOf, serve } from './serve.mjs';

const tools = questions.tools.map((tool) => ({ type: 'function', function: tool }));
const { title: name, ...schema } = questions.schema;

function model(call) {
  return new ChatOpenAI({
    model: call.model,
    apiKey: keyOf(call),
    configuration: { baseURL: baseUrl, defaultHeaders: call.headers },
    ...(call.temperature === undefined ? {} : { temperature: call.temperature }),
    ...retriesOf(call),
  });
}

function view(message) {
  const usage = message.usage_metadata;
  return {
    text: message.text,
    toolCalls: (message.tool_calls ?? []).map((made) => ({ id: made.id, name: made.name, input: made.args })),
    finish: message.response_metadata.finish_reason,
    usage: usage ? [usage.input_tokens, usage.output_tokens, usage.total_tokens] : null,
  };
}

async function ask(runnable, messages = questions.prompt) {
  return view(await runnable.invoke(messages));
}

async function streamed(runnable, progress) {
  let whole;
  let pieces = 0;
  for await (const chunk of await runnable.stream(questions.prompt)) {
    if (chunk.text !== '') pieces += 1;
    progress.text += chunk.text;
    whole = whole === undefined ? chunk : whole.concat(chunk);
  }
  return { ...view(whole), pieces };
}

function picture(url) {
  const content = [
    { type: 'text', text: questions.imagePrompt },
    { type: 'image_url', image_url: { url } },
  ];
  return [new HumanMessage({ content })];
}

async function structured(call, method) {
  const runnable = model(call).withStructuredOutput(schema, { name, method, includeRaw: true, strict: true });
  const { raw, parsed } = await runnable.invoke(questions.prompt);
  return { ...view(raw), object: parsed };
}

const actions = {
  chat: (call) => ask(model(call)),
  stream: (call, progress) => streamed(model(call), progress),
  tools: (call) => ask(model(call).bindTools(tools)),
  'stream-tools': (call, progress) => streamed(model(call).bindTools(tools), progress),
  'tool-loop': async (call) => {
    const runnable = model(call).bindTools(tools);
    const question = new HumanMessage(questions.prompt);
    const first = await runnable.invoke([question]);
    const results = first.tool_calls.map(
      (made) => new ToolMessage({ tool_call_id: made.id, content: questions.toolResult }),
    );
    return view(await runnable.invoke([question, first, ...results]));
  },
  image: (call) => ask(model(call), picture(`data:image/png;base64,${questions.image}`)),
  'image-url': (call) => ask(model(call), picture(questions.imageUrl)),
  json: (call) => structured(call, 'jsonSchema'),
  'stream-json': async (call, progress) => {
    const json = { type: 'json_schema', json_schema: { name, strict: true, schema } };
    const seen = await streamed(model(call).withConfig({ response_format: json }), progress);
    return { ...seen, object: JSON.parse(seen.text) };
  },
  'json-by-tool': (call) => structured(call, 'functionCalling'),
  cancel: async (call) => {
    const leaving = new AbortController();
    let text = '';
    try {
      for await (const chunk of await model(call).stream(questions.prompt, { signal: leaving.signal })) {
        text += chunk.text;
        if (text.includes('t1')) leaving.abort();
      }
    } catch (error) {
      if (error.name !== 'AbortError') throw error;
    }
    return { text };
  },
};

await serve(actions, openAiError);
