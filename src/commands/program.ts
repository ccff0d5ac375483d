import { Command, CommanderError, Help } from 'commander';
import { errorWords } from '../core/error-words.ts';
import { StoreAway } from '../core/store-away.ts';
import { packageVersion } from '../package-version.ts';
import { addCheckConfig } from './check-config.ts';
import { addCompletion } from './completion.ts';
import { addDemo } from './demo.ts';
import { addEvidenceKey } from './evidence-key.ts';
import { CommandError, exitCodes, exitRows } from './exit-codes.ts';
import { addExport } from './export.ts';
import { addMigrate } from './migrate.ts';
import { addNewKey } from './new-key.ts';
import { addOpenApi } from './openapi.ts';
import { allRead, endWithStdout, print } from './output.ts';
import { addReport } from './report.ts';
import { addReprice } from './reprice.ts';
import { addReseal } from './reseal.ts';
import { addServe } from './serve.ts';
import { addSpend } from './spend.ts';
import { addUsers } from './users.ts';
import { addVerifyReport } from './verify-report.ts';
import { addWait } from './wait.ts';

const about = 'Self-hosted LLM gateway. Without a command it serves; settings come from the environment.';

const unmigrated = 'the database lacks the schema of this release: run "model-gateway migrate"';

const refused = 'the database refuses the settings of this command';
const unavailable = 'the database is not available, try again shortly';

const plain = new Help();
/** The same on every terminal, and where there is none. */
const helpColumns = 100;

const exitTable = exitRows.map(([, code, meaning]) => `  ${String(code).padEnd(4)}${meaning}`).join('\n');

/** In the order of the help. A new command is a file of its own and a line here. */
const adders = [
  addServe,
  addMigrate,
  addReseal,
  addUsers,
  addSpend,
  addReprice,
  addExport,
  addReport,
  addVerifyReport,
  addEvidenceKey,
  addNewKey,
  addCheckConfig,
  addOpenApi,
  addCompletion,
  addDemo,
  addWait,
];

/** The whole command line. */
function createProgram(): Command {
  const program = new Command('model-gateway');
  program
    .description(about)
    .usage('[command] [options]')
    .version(packageVersion(), '-V, --version', 'print the version')
    .helpCommand('help [command]', 'explain a command')
    .exitOverride()
    .configureOutput({
      writeOut: print,
      outputError: (text, write) => write(text.replace(/^error: /, 'model-gateway: ')),
      getOutHelpWidth: () => helpColumns,
      getErrHelpWidth: () => helpColumns,
    })
    .configureHelp({ subcommandTerm: (command) => plain.subcommandTerm(command).replace(' [options]', '') })
    .showHelpAfterError(
      '("model-gateway --help" lists the commands, "model-gateway help COMMAND" explains one)',
    )
    .addHelpText('after', `\nExit codes:\n${exitTable}`);
  for (const add of adders) add(program);
  return program;
}

/** `help users limits` as `users help limits`: help knows the commands of one level only. */
function atTheirLevel([first = 'serve', ...rest]: readonly string[]): string[] {
  const last = rest.at(-1);
  const isDeep = first === 'help' && rest.length > 1 && last !== undefined;
  return isDeep ? [...rest.slice(0, -1), first, last] : [first, ...rest];
}

/** Asked to explain what is not there, commander explains all that is, and does not say why. */
function refuseUnknownTopic(program: Command, args: readonly string[]): void {
  let level = program;
  let explains = false;
  for (const name of args) {
    if (level.commands.length === 0 || name.startsWith('-')) return;
    if (name === 'help') {
      explains = true;
      continue;
    }
    const next = level.commands.find((command) => command.name() === name);
    if (next === undefined && explains) level.error(`error: unknown command '${name}'`);
    if (next === undefined) return;
    level = next;
  }
}

/** They write a line now and then, and end whether anybody reads it or not. */
const servers: ReadonlySet<string> = new Set(['serve', 'demo']);

/** `users list`, say. */
function pathOf(command: Command): string {
  const { parent } = command;
  return parent === null || parent.parent === null ? command.name() : `${pathOf(parent)} ${command.name()}`;
}

/** Of what a command threw: what it tells, and its exit code. */
async function endOf(error: unknown): Promise<{ readonly message: string; readonly code: number }> {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof CommandError) return { message, code: error.exitCode };
  const { EvidenceFileError } = await import('../adapters/system/evidence-files.ts');
  if (error instanceof EvidenceFileError && error.isMissing) return { message, code: exitCodes.notFound };
  const { isAway, lacksSchema, refusesSettings } = await import('../adapters/postgres/pool.ts');
  if (lacksSchema(error)) return { message: unmigrated, code: exitCodes.failed };
  const reason = errorWords(error);
  if (refusesSettings(error)) return { message: `${refused}: ${reason}`, code: exitCodes.failed };
  if (error instanceof StoreAway || isAway(error))
    return { message: `${unavailable}: ${reason}`, code: exitCodes.away };
  return { message, code: exitCodes.failed };
}

/** Runs what the arguments name, `serve` without any, and resolves with the exit code. What went wrong is on stderr. */
export async function runCommand(args: readonly string[]): Promise<number> {
  const program = createProgram();
  let running = '';
  program.hook('preAction', (_program, command) => {
    running = pathOf(command);
  });
  process.stdout.on('error', (error) => {
    if (!servers.has(running)) endWithStdout(error);
  });
  try {
    const named = atTheirLevel(args);
    refuseUnknownTopic(program, named);
    await program.parseAsync(named, { from: 'user' });
    if (!servers.has(running)) await allRead();
    return exitCodes.done;
  } catch (error) {
    // It has written already what there is to say.
    if (error instanceof CommanderError) {
      if (error.exitCode !== 0) return exitCodes.usage;
      await allRead();
      return exitCodes.done;
    }
    const { message, code } = await endOf(error);
    process.stderr.write(`model-gateway ${running}: ${message}\n`);
    return code;
  }
}
