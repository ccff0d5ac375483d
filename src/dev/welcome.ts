/** What `npm start` prints once everything runs: lines to paste, with a key that works. */
export function welcomeText(
  gatewayUrl: string,
  adminUrl: string,
  apiKey: string,
  startedInMs: number,
): string {
  const forDocuments = `export GW=${gatewayUrl} KEY=${apiKey}`;
  const body = '{"model":"gw/balanced","stream":true,"messages":[{"role":"user","content":"Hello"}]}';
  return `
Model Gateway runs on ${gatewayUrl} (metrics and probes: ${adminUrl}); started in ${(startedInMs / 1000).toFixed(1)} s.

For lines of the documents:

${forDocuments}

Stream an answer from the demo model:

curl -N ${gatewayUrl}/v1/chat/completions -H 'Authorization: Bearer ${apiKey}' -H 'Content-Type: application/json' -H 'X-Gateway-Override-Model: self_hosted/demo:demo' -d '${body}'

The same with an OpenAI SDK, TypeScript:

  import OpenAI from 'openai';
  const client = new OpenAI({
    baseURL: '${gatewayUrl}/v1',
    apiKey: '${apiKey}',
    defaultHeaders: { 'X-Gateway-Override-Model': 'self_hosted/demo:demo' },
  });
  const messages = [{ role: 'user' as const, content: 'Hello' }];
  const stream = await client.chat.completions.create({ model: 'gw/balanced', stream: true, messages });
  for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? '');

Python:

  from openai import OpenAI
  client = OpenAI(base_url="${gatewayUrl}/v1", api_key="${apiKey}",
                  default_headers={"X-Gateway-Override-Model": "self_hosted/demo:demo"})
  for chunk in client.chat.completions.create(model="gw/balanced", stream=True,
                                              messages=[{"role": "user", "content": "Hello"}]):
      print(chunk.choices[0].delta.content or "", end="", flush=True)

Ctrl-C stops everything.
`;
}
