/** The served description says of a chat body what the routing tables in use say of it. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { compileTables } from '../../../src/core/tables/compile-tables.ts';
import { validateTables } from '../../../src/core/tables/validate-tables.ts';
import { parseChatBody } from '../../../src/http/body/chat-body.ts';
import { jsonAllowanceFor } from '../../../src/http/body/costly-json.ts';
import { openApiDocument } from '../../../src/http/schemas/openapi.ts';
import type { TablesInput } from '../../harness/gateway/tables.ts';
import { tables } from '../../harness/gateway/tables.ts';

type Chat = NonNullable<TablesInput['chat']>;

interface Described {
  readonly paths: Record<string, { readonly post: { readonly requestBody: { readonly content: Content } } }>;
}
type Content = Record<'application/json', { readonly schema: object }>;

function compiled(chat: Chat) {
  const validation = validateTables(tables({ chat }));
  if (!validation.ok) throw new Error(JSON.stringify(validation));
  return compileTables(validation.document, '0123456789abcdef', 1);
}

const user = { role: 'user', content: 'Hi' };
const bodies = {
  plain: { model: 'gw/balanced', messages: [user] },
  'with a developer message': {
    model: 'gw/balanced',
    messages: [{ role: 'developer', content: 'Be brief' }, user],
  },
  'with a field of a vendor': { model: 'gw/balanced', messages: [user], reasoning_effort: 'low' },
  'with that field as null': { model: 'gw/balanced', messages: [user], reasoning_effort: null },
  'with another field': { model: 'gw/balanced', messages: [user], verbosity: 1 },
  'with a wrong known field': { model: 'gw/balanced', messages: [user], n: 'two' },
} as const;

const cases: Chat[] = [
  {},
  { developer_role: true },
  { passthrough_fields: ['reasoning_effort'] },
  { passthrough_fields: ['reasoning_effort', 'verbosity'], developer_role: true },
  // The known field stays what it is.
  { passthrough_fields: ['n'] },
];

test.each(cases.flatMap((chat) => Object.entries(bodies).map(([name, body]) => ({ chat, name, body }))))(
  'under $chat a body $name is described as it is taken',
  ({ chat, body }) => {
    const routing = compiled(chat);
    const document = openApiDocument('0.1.0', {
      chat: routing.document.chat,
      hasStore: true,
      registration: 'open',
      hasAdminApi: false,
    }) as unknown as Described;
    const described = document.paths['/v1/chat/completions']?.post.requestBody.content['application/json'];
    const isDescribed = new Ajv2020({ strict: false }).validate(described?.schema ?? false, body);
    let isTaken = true;
    try {
      parseChatBody(body, routing, jsonAllowanceFor(Buffer.alloc(0)));
    } catch {
      isTaken = false;
    }
    expect(isDescribed).toBe(isTaken);
  },
);
