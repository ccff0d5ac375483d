import type { ReceivedRequest } from '../harness/vendors/vendor-reply.ts';

type Json = Readonly<Record<string, unknown>>;

function messages(request: ReceivedRequest): readonly { role: string; content: unknown }[] {
  return request.body['messages'] as { role: string; content: unknown }[];
}

function partsOf(content: unknown): readonly Json[] {
  return Array.isArray(content) ? (content as Json[]) : [];
}

/** The pictures a vendor was shown: addresses, or data URIs. */
export function picturesSeen(request: ReceivedRequest): string[] {
  const parts = messages(request).flatMap((message) => partsOf(message.content));
  if (request.dialect === 'openai') {
    return parts
      .filter((part) => part['type'] === 'image_url')
      .map((part) => String((part['image_url'] as Json)['url']));
  }
  return parts
    .filter((part) => part['type'] === 'image')
    .map((part) => {
      const source = part['source'] as Json;
      return source['type'] === 'url'
        ? String(source['url'])
        : `data:${String(source['media_type'])};base64,${String(source['data'])}`;
    });
}

/** Names of the tools a vendor was offered. */
export function toolsSeen(request: ReceivedRequest): string[] {
  const tools = (request.body['tools'] ?? []) as readonly Json[];
  return tools.map((tool) => String(((tool['function'] as Json | undefined) ?? tool)['name']));
}

/** The one tool a vendor was told to call. */
export function forcedToolSeen(request: ReceivedRequest): string {
  const choice = request.body['tool_choice'] as Json;
  return String(((choice['function'] as Json | undefined) ?? choice)['name']);
}

/** Results of tools as a vendor was given them: id and text. */
export function toolResultsSeen(request: ReceivedRequest): [id: string, text: string][] {
  if (request.dialect === 'openai') {
    return messages(request)
      .filter((message) => message.role === 'tool')
      .map((message) => [String((message as unknown as Json)['tool_call_id']), textOf(message.content)]);
  }
  return messages(request)
    .flatMap((message) => partsOf(message.content))
    .filter((part) => part['type'] === 'tool_result')
    .map((part) => [String(part['tool_use_id']), textOf(part['content'])]);
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return partsOf(content)
    .map((part) => String(part['text']))
    .join('');
}

/** The schema a vendor was told to keep to. */
export function schemaSeen(request: ReceivedRequest): Json {
  const { body } = request;
  const format =
    request.dialect === 'openai'
      ? ((body['response_format'] as Json)['json_schema'] as Json)
      : ((body['output_config'] as Json)['format'] as Json);
  return format['schema'] as Json;
}
