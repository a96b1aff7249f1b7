// Counts the results of one run of the MCP conformance suite against what the revision requires of servers.
//
// Usage: node conformance.mjs SUITE REVISION RESULTS; fails unless every scored scenario ran and passed.

import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const [suite, revision, results] = process.argv.slice(2);
const { parse } = createRequire(path.join(path.resolve(suite), 'package.json'))('yaml');
const requirements = parse(readFileSync(path.join(suite, 'requirements', `${revision}.yaml`), 'utf8'));

const runs = readdirSync(results);
const total = { scenarios: 0, passed: 0, checks: 0, warnings: 0 };
for (const scenario of requirements.server) {
  const run = runs.find((name) => name.startsWith(`server-${scenario}-2`));
  const checks = run ? JSON.parse(readFileSync(path.join(results, run, 'checks.json'), 'utf8')) : [];
  const having = (status) => checks.filter((check) => check.status === status);
  total.scenarios += 1;
  total.checks += having('SUCCESS').length;
  total.warnings += having('WARNING').length;
  for (const check of [...having('FAILURE'), ...having('WARNING')]) {
    console.log(`${check.status} ${scenario} ${check.id}: ${check.errorMessage}`);
  }
  // One that checked nothing has shown nothing.
  if (having('FAILURE').length === 0 && having('SUCCESS').length > 0) total.passed += 1;
  else console.log(`FAILED ${scenario}`);
}
const { scenarios, passed, checks, warnings } = total;
console.log(`${revision}: ${passed} of ${scenarios} scored scenarios passed (${checks} checks, ${warnings} warnings)`);
process.exit(passed === scenarios && scenarios > 0 ? 0 : 1);
