/** The programs on the pages of the Vercel AI SDK and LangChain, run as they stand. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { blocksIn, printedByNode, printedByPython } from '../harness/clients/page-blocks.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { skipWithout } from '../harness/stage/tools.ts';

const gateway = useGateway();
const user = useUser(gateway);
const variables = () => ({ GW: gateway.url, KEY: user.key });
const modules = () => join(process.env['GW_CLIENT_PACKAGES'] ?? '', 'node_modules');

test.each([
  [
    'docs/integrations/vercel-ai-sdk.md',
    [/^Namaste, world\. 18\n$/, /^Namaste, world\.\nopenai \d\.\d{6}\n$/],
  ],
  ['docs/integrations/langchain.md', [/^Namaste, world\.\nNamaste, world\.$/]],
])('%s works on Node', async (page, expected) => {
  const programs = blocksIn(page, 'js');
  expect(programs).toHaveLength(expected.length);
  for (const [index, program] of programs.entries())
    expect(await printedByNode(program, modules(), variables())).toMatch(expected[index] as RegExp);
});

test('docs/integrations/langchain.md works with Python', async () => {
  skipWithout('python3', 'LangChain runs on it');
  const programs = blocksIn('docs/integrations/langchain.md', 'python');
  expect(programs).toHaveLength(1);
  for (const program of programs)
    expect(await printedByPython(program, process.env['GW_CLIENT_PYTHON'] ?? '', variables())).toBe(
      'Namaste, world.\nNamaste, world.',
    );
});
