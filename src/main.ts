#!/usr/bin/env node
import { runCommand } from './commands/program.ts';
import { forgetPostgresVariables } from './settings.ts';

forgetPostgresVariables();
process.exitCode = await runCommand(process.argv.slice(2));
// Nothing is left to do; what a library keeps open must not keep the process.
process.exit();
