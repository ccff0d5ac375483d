import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** One run of the generator: one operation, one kind of caller. */
export interface Job {
  readonly name: string;
  /** For `--include-name`: method and path. */
  readonly operation: string;
  /** Of the port that has the operation. */
  readonly url: string;
  readonly cases: number;
  /** Null: no Authorization header. */
  readonly authorization: string | null;
  readonly seed: number;
}

export interface Outcome {
  readonly job: Job;
  readonly generated: number;
  /** What the checks found, one entry each, as the report has it. */
  readonly found: readonly string[];
  readonly output: string;
}

const checks = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
];

/** Makes a part of the chat requests such that they can be answered. */
const hooks = join(import.meta.dirname, 'sendable.py');

interface Report {
  readonly test_cases: { readonly generated: number };
  readonly failures: readonly unknown[];
  readonly errors: readonly unknown[];
}

/** Runs one job to its end. Rejects when the generator leaves no report. */
export async function runJob(
  job: Job,
  index: number,
  world: { document: string; folder: string },
): Promise<Outcome> {
  const report = join(world.folder, `report-${index}.json`);
  const python = process.env['GW_SCHEMA_PYTHON'] ?? 'python3';
  const child = spawn(
    join(python, '..', 'schemathesis'),
    [
      ...['run', world.document, '--url', job.url, '--include-name', job.operation],
      ...['--phases', 'fuzzing', '--max-examples', String(job.cases), '--seed', String(job.seed)],
      ...['--workers', '1', '--no-shrink', '--continue-on-failure', '--checks', checks.join(',')],
      ...[
        '--suppress-health-check',
        'all',
        '--warnings',
        'off',
        '--report',
        'json',
        '--report-json-path',
        report,
      ],
      ...(job.authorization === null ? [] : ['--header', `Authorization: ${job.authorization}`]),
    ],
    {
      cwd: world.folder,
      env: { ...process.env, SCHEMATHESIS_HOOKS: hooks },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await new Promise<void>((resolve, reject) => child.once('error', reject).once('close', () => resolve()));
  const { test_cases: cases, failures, errors } = readReport(report, output);
  return {
    job,
    generated: cases.generated,
    found: [...failures, ...errors].map((entry) => JSON.stringify(entry)),
    output,
  };
}

function readReport(path: string, output: string): Report {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Report;
  } catch {
    throw new Error(`schemathesis left no report:\n${output}`);
  }
}
