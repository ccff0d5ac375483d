/** What becomes of a code block of the documents. */
export type BlockUse =
  /** A test reads it from the page and runs it. `but` names commands of it that are left out, and why. */
  | { readonly runBy: string; readonly but?: string }
  /** Nothing in it can be run here: why. */
  | { readonly shown: string };

const run = (runBy: string, but?: string): BlockUse => (but === undefined ? { runBy } : { runBy, but });
const shown = (why: string): BlockUse => ({ shown: why });

const output = shown('what is answered or logged');
const setUp = shown('installs a client, which the tests do with pinned versions, and sets the two variables');
const stages = shown('names the stages of the tests, which run by themselves');
const asPrinted = 'npm start runs in test/platform; what it prints is put in';

const pages = 'test/docs/pages.test.ts';
const operations = 'test/docs/operations.test.ts';
const installation = 'test/docs/installation.test.ts';
const cluster = 'test/cluster/pages.test.ts';
const backup = 'test/stores/backup.test.ts';
const examples = 'test/docs/examples.test.ts';
const clients = 'test/clients-matrix/pages.test.ts';

/** Every block of every document, in its order: how it begins, and what becomes of it. */
export const blockUses: Readonly<Record<string, readonly (readonly [beginning: string, use: BlockUse])[]>> = {
  'ARCHITECTURE.md': [['client ──►', shown('a drawing')]],
  'CONTRIBUTING.md': [
    ['npm start ', stages],
    ['acme: {', run(examples)],
    ['- name: user is not listed', shown('a case of a fixture, for a vendor that is not there')],
    ['import { compatibleProvider }', run(examples)],
    ['import { useGateway, useUser }', run(examples)],
  ],
  'README.md': [
    ['npm start ', stages],
    ['export GW=', run(pages, asPrinted)],
    ['{\n  "id": "chatcmpl-…"', output],
    ['curl -s $GW/v1/keys', run(pages)],
  ],
  'SECURITY.md': [['WHO=(--certificate-identity-regexp', run('test/release/signatures.test.ts')]],
  'charts/model-gateway/README.md': [
    ['kubectl create namespace gateway', run(cluster, 'helm test, which test/node/install.test.ts runs')],
  ],
  'docs/api.md': [['{"error":', output]],
  'docs/backup.md': [
    ['pg_dump', run(backup)],
    ['createdb', run(backup)],
    ['curl -s $ADMIN/readyz', run(backup)],
    ['curl -s -X POST "$GW/v1/keys/$KEY_ID/check"', run(backup)],
    ['model-gateway spend', run(backup)],
  ],
  'docs/comparison.md': [
    ['npm run bench', stages],
    ['npm run crash-test', run(installation)],
  ],
  'docs/install.md': [
    ['npm ci && npm run build', run(installation, 'npm ci and the build, which every stage begins with')],
    ['docker build', shown('needs Docker; test/node builds the image of the Dockerfile without it')],
    ['helm install model-gateway oci:', run(cluster, 'the registry: the chart is taken from its folder')],
    ['npm run crash-test', run(installation)],
  ],
  'docs/integrations/continue.md': [['name: Model Gateway', run(pages)]],
  'docs/integrations/curl.md': [
    ['export GW=', run(pages, asPrinted)],
    ['curl -s $GW/v1/chat/completions', run(pages)],
    ['curl -sN $GW/v1/chat/completions', run(pages)],
    ['curl -s $GW/v1/chat/completions', run(pages)],
    ['curl -s $GW/v1/chat/completions', run(pages)],
  ],
  'docs/integrations/langchain.md': [
    ['pip install', setUp],
    ['import os', run(clients)],
    ['npm install', setUp],
    ['import { ChatOpenAI }', run(clients)],
  ],
  'docs/integrations/open-webui.md': [
    ['export ENABLE_OLLAMA_API', run(pages, 'Open WebUI itself: a stand-in asks what it asks')],
  ],
  'docs/integrations/openai-node.md': [
    ['npm install', setUp],
    ['import OpenAI', run(pages)],
    ['import OpenAI', run(pages)],
    ['import OpenAI', run(pages)],
    ['import OpenAI', run(pages)],
  ],
  'docs/integrations/openai-python.md': [
    ['pip install', setUp],
    ['import os', run(pages)],
    ['import os', run(pages)],
    ['import os', run(pages)],
    ['import os', run(pages)],
  ],
  'docs/integrations/vercel-ai-sdk.md': [
    ['npm install', setUp],
    ['import { createOpenAICompatible }', run(clients)],
    ['import { createOpenAICompatible }', run(clients)],
  ],
  'docs/operations.md': [
    ['curl -s "$GW/v1/logs?request_id', run(operations)],
    ['DATABASE_URL=postgres://… model-gateway reprice', run(operations)],
    ['DATABASE_URL=postgres://… model-gateway export', run(operations)],
    ['model-gateway evidence-key', run(operations)],
    ['model-gateway report', run(operations)],
    ['grep ', run(operations)],
    ['curl -s -X POST "$GW/v1/keys/$KEY_ID/check"', run(operations)],
    ['model-gateway users list', run(operations)],
    ['model-gateway users delete', run(operations)],
    ['model-gateway spend', run(operations)],
    ['curl -s $ADMIN/admin/users', run(operations)],
    ['model-gateway users add', run(operations)],
    ['model-gateway users set-residency', run(operations)],
    ['residency:', run(installation)],
    ['curl -s $GW/v1/service-keys', run(operations)],
  ],
  'docs/performance.md': [['npm run bench', stages]],
  'docs/quick-start.md': [
    ['npm start', shown('test/platform runs it')],
    ['export GW=', run(pages, asPrinted)],
    ['curl -s $GW/v1/chat/completions', run(pages)],
    ['curl -sN $GW/v1/chat/completions', run(pages)],
    ['curl -s "$GW/v1/logs?limit=2"', run(pages)],
    ['curl -s $GW/v1/keys', run(pages)],
    ['curl -s $GW/v1/chat/completions', run(pages)],
    ['curl -s $GW/v1/users', run(pages)],
  ],
  'docs/requests.md': [['{"error":', output]],
  'docs/settings.md': [
    ['node dist/main.js check-config', run(installation)],
    ['limits:', run(installation)],
  ],
  'docs/sizing.md': [
    ['cores  =', shown('a formula')],
    ['pods        =', shown('a formula')],
  ],
  'docs/telemetry.md': [
    [
      'sum(count_over_time(',
      shown('asks Loki, which the tests do not have; test/telemetry compares its lines'),
    ],
    ['{"level":"info"', output],
    ['{"level":"info"', output],
  ],
  'docs/troubleshooting.md': [['curl -s "$GW/v1/logs?request_id', run(operations)]],
  'load-tests/README.md': [
    ['npm run test:load', stages],
    [
      'BASE_URL=https://gateway.example.com',
      shown('asks a deployment; npm run test:load runs the same scripts'),
    ],
  ],
  'k8s/README.md': [
    ['docker build', run(cluster, 'Docker, the rollout of pods and the way to them')],
    ['DEMO=$(kubectl', run('test/chart/eval-overlay.test.ts')],
    [
      'kubectl apply -k k8s/overlays/sidecar-demo',
      run(cluster, 'the logs of the pods, which test/node reads'),
    ],
  ],
};
