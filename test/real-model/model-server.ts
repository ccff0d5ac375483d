import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { HttpClient } from '../harness/gateway/http-client.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import { contextLength, tinyModel } from './tiny-model.ts';

/** Loading takes well under a second on an idle machine. */
const startLimitMs = 30_000;

export const modelName = 'tiny-random:f32';
export const modelServerKey = 'sk-llama-server';

export interface ModelServer {
  readonly url: string;
  /** Calls the server directly, with its key. */
  readonly client: HttpClient;
  /** What it is doing and has done so far. */
  work(): Promise<Work>;
  /** A crash. */
  kill(): Promise<void>;
  /** Ends the server and removes its model. */
  close(): Promise<void>;
}

/** From GET /metrics: https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md */
export interface Work {
  /** Requests in progress. */
  readonly requests: number;
  /** Runs of the model: one for each generated token, and some for prompts. */
  readonly decodes: number;
}

/** Starts llama.cpp's server on a free loopback port; it also ends when this process does. */
export async function startModelServer(): Promise<ModelServer> {
  const python = process.env['GW_TEST_PYTHON'];
  const packages = process.env['GW_TEST_PYTHON_PACKAGES'];
  if (python === undefined || packages === undefined) throw new Error('Run "npm run test:real-model".');
  const folder = await mkdtemp(join(tmpdir(), 'model-gateway-test-'));
  const modelFile = join(folder, 'tiny.gguf');
  await writeFile(modelFile, tinyModel());
  const args = [join(import.meta.dirname, 'serve.py'), modelFile, modelName, String(contextLength)];
  const child = spawn(python, args, {
    env: { ...process.env, PYTHONPATH: packages, LLAMA_API_KEY: modelServerKey },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const kill = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  const close = async () => {
    await kill();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const url = await addressOf(child, exited);
    const client = httpClient(url, modelServerKey);
    return { url, client, work: () => readWork(client), kill, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function readWork(client: HttpClient): Promise<Work> {
  const { text } = await client.get('/metrics');
  const metric = (name: string): number => {
    const value = new RegExp(`^llamacpp:${name} (\\d+)$`, 'm').exec(text)?.[1];
    if (value === undefined) throw new Error(`the model server has no metric ${name}:\n${text}`);
    return Number(value);
  };
  return { requests: metric('requests_processing'), decodes: metric('n_decode_total') };
}

/** The first line that the server prints. */
function addressOf(child: ChildProcess, exited: Promise<void>): Promise<string> {
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error('the model server has no output');
  let complaints = '';
  stderr.on('data', (bytes: Buffer) => {
    complaints = (complaints + bytes.toString()).slice(-4_000);
  });
  return new Promise((resolve, reject) => {
    const fail = (what: string) => reject(new Error(`model server ${what}:\n${complaints}`));
    const timer = setTimeout(() => fail('did not start'), startLimitMs);
    child.once('error', reject);
    void exited.then(() => fail('ended'));
    createInterface({ input: stdout }).once('line', (line) => {
      clearTimeout(timer);
      resolve(line);
    });
  });
}
