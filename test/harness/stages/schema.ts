import { optionalPython } from '../clients/python-packages.ts';
import { mustBuild } from '../stage/build.ts';
import { StageError } from '../stage/project.ts';
import { oneSkip, runStage, skipOrThrow, suiteTally, withPostgres } from '../stage/run-stage.ts';

/** Pinned: what it generates and checks changes with its version. */
const packages = ['schemathesis==4.32.5'];

/**
 * `npm run test:schema`: schemathesis over our own OpenAPI document, against the built gateway with fake vendors.
 * `GW_SCHEMA_CASES` asks for another number of cases than 50,000.
 */
await runStage(async () => {
  const python = await interpreter().catch(skipOrThrow);
  if (python === null) return oneSkip;
  await mustBuild();
  return await withPostgres((folder, databaseUrl) =>
    suiteTally('schema', folder, { TEST_DATABASE_URL: databaseUrl, GW_SCHEMA_PYTHON: python }),
  );
});

async function interpreter(): Promise<string> {
  const python = await optionalPython('schemathesis', packages);
  if (python === null) throw new StageError('schemathesis needs python3.');
  return python;
}
