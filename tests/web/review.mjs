// A review with remarks on lines of the changes, which become one rejection that the next agent gets.
//
// Usage: node review.mjs CALLBOARD DIRECTORY

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';

import { Board, Watch, launch, passed, until } from './board.mjs';

const [callboard, home] = process.argv.slice(2);
const git = (...words) => execFileSync('git', ['-C', home, '-c', 'user.name=n', '-c', 'user.email=e@example.org', ...words], { encoding: 'utf8' }).trim();
const file = path.join(home, 'lexer.txt');
git('init', '--quiet', '--initial-branch=main');
writeFileSync(file, 'one\ntwo\nthree\nfour\n');
git('add', 'lexer.txt');
git('commit', '--quiet', '--message', 'Begin');
git('checkout', '--quiet', '-b', 'work/r');
writeFileSync(file, 'one\n2\nthree\nfour\nfive\n');
git('commit', '--quiet', '--all', '--message', 'Count');
const commit = git('rev-parse', 'HEAD');
git('checkout', '--quiet', 'main');

const board = await new Board(callboard, home).serve();
for (const agent of ['ada', 'bob']) await board.call('register_agent', { agent_id: agent, role: 'worker' });
for (const id of ['r1', 'r2']) {
  await board.call('create_task', { id, title: `Title of ${id}`, description: 'd', review: 'required' });
  await board.call('claim_task', { agent_id: 'ada', task_id: id });
  await board.call('complete_task', { agent_id: 'ada', task_id: id, output: 'done', branch: 'work/r', commit });
}
const browser = await launch();
const watch = new Watch();
const page = await watch.open(browser, board, board.link);
const sentBack = async (id) => (await board.call('get_task', { task_id: id })).task.attempts.at(-1).reviewed.comment;

await page.goto(`${board.origin}/tasks/r1`);
const field = page.locator('form[action="/do/reject"] textarea');
assert(!(await field.isVisible()));
await page.locator('#changes ins .at-line', { hasText: '5' }).click();
assert(await field.isVisible());
assert(await field.evaluate((element) => element === document.activeElement));
await page.keyboard.type('say why');
await page.locator('#changes del .at-line', { hasText: '2' }).click();
await page.keyboard.type('keep it');
const remarks = 'lexer.txt:5: say why\nlexer.txt:2 (removed): keep it';
assert.equal(await field.inputValue(), remarks);
passed('a click on a line names it in what is sent back');

await page.reload();
await until('the draft is there', async () => (await field.inputValue()) === remarks);
assert(await field.isVisible());
// What happens meanwhile takes nothing away.
await board.call('create_task', { id: 'later', title: 'Later', description: 'd' });
await board.call('send_message', { agent_id: 'ada', to: 'human', text: 'Ready?', task_id: 'r1' });
await until('the message is shown', async () => (await page.textContent('#facts')).includes('Ready?'));
assert.equal(await field.inputValue(), remarks);
passed('remarks survive a reload and what happens meanwhile');

await page.locator('form[action="/do/reject"] button').click();
await until('it is sent back', async () => (await board.call('get_task', { task_id: 'r1' })).task.status === 'available');
assert.equal(await sentBack('r1'), remarks);
const claimed = await board.call('claim_task', { agent_id: 'bob', task_id: 'r1' });
const handed = JSON.stringify(claimed);
for (const line of remarks.split('\n')) assert(handed.includes(line), handed);
await page.reload();
assert((await page.locator('#attempts').innerText()).includes(remarks), 'in two lines');
assert.equal(await field.count(), 0);
assert.equal(await page.evaluate(() => Object.keys(sessionStorage).filter((name) => name.includes('reject')).length), 0);
passed('remarks reach the next agent as one rejection');

// Without script the field is beside the changes, and the numbers lead to it.
const plain = await watch.open(browser, board, null, { javaScriptEnabled: false, storageState: await page.context().storageState() });
await plain.goto(`${board.origin}/tasks/r2`);
await plain.click('#changes a');
await plain.waitForURL(`${board.origin}/tasks/r2/diff`);
await plain.locator('ins .at-line').first().click();
assert.match(plain.url(), /#reason$/);
await plain.fill('#reason', 'lexer.txt:5: why?');
await plain.click('form[action="/do/reject"] button');
assert.match(await plain.textContent('#notice'), /sent back/);
assert.equal(await sentBack('r2'), 'lexer.txt:5: why?');
passed('it works without script');
await watch.check(page);
passed('nothing against the policy');
await browser.close();
await board.end();
