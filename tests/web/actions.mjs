// Logging in, every action done once through the page, an action that came too late, and an observer.
//
// Usage: node actions.mjs CALLBOARD DIRECTORY

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';

import { Board, Watch, isLive, launch, passed, until } from './board.mjs';

const [callboard, home] = process.argv.slice(2);
const board = await new Board(callboard, home).serve();
const browser = await launch();
const watch = new Watch();
const task = async (id) => (await board.call('get_task', { task_id: id })).task;

// Without a cookie every address has the field for the code.
const page = await watch.open(browser, board, null);
await page.goto(`${board.origin}/tasks/t1`);
await page.fill('input[name=code]', 'wrong');
await page.click('button');
assert.match(await page.textContent('[role=alert]'), /expired or was used/);
await page.fill('input[name=code]', board.link.split('#')[1]);
await page.click('button');
await page.waitForURL(`${board.origin}/`);
const cookies = await page.context().cookies();
assert.deepEqual(cookies.map(({ httpOnly, sameSite, domain }) => [httpOnly, sameSite, domain]), [[true, 'Lax', new URL(board.origin).hostname]]);
const late = await watch.open(browser, board, null);
await late.goto(board.link);
await late.waitForSelector('[role=alert]');
assert(!late.url().includes('#'));
passed('a code logs in once');

await isLive(page, 'on');
/** Sends the form that has these fields, as a person does who fills it in and presses its button. */
const send = async (action, hidden, typed = {}, on = page) => {
  const chosen = Object.entries(hidden).map(([name, value]) => `:has([name="${name}"][value="${value}"])`).join('');
  const fields = Object.keys(typed).map((name) => `:has(:is(input, select, textarea)[name="${name}"])`).join('');
  const form = on.locator(`form[action="/do/${action}"]${chosen}${fields}`).first();
  await form.waitFor({ state: 'attached' });
  await form.evaluate((element) => {
    for (let outer = element.closest('details'); outer; outer = outer.parentElement.closest('details')) outer.open = true;
  });
  for (const [name, value] of Object.entries(typed)) {
    const field = form.locator(`:is(input, select, textarea)[name="${name}"]`);
    if (await field.evaluate((element) => element.tagName === 'SELECT')) await field.selectOption(value);
    else await field.fill(value);
  }
  await on.evaluate(() => document.getElementById('notice').replaceChildren());
  const buttons = Object.keys(hidden).map((name) => `button[name="${name}"]`);
  await form.evaluate((element, wanted) => {
    element.requestSubmit((wanted && element.querySelector(wanted)) || element.querySelector('button'));
  }, buttons.join());
  await until('a notice', () => on.evaluate(() => document.getElementById('notice')?.textContent.trim()));
  const said = await on.evaluate(() => [document.getElementById('notice').textContent.trim(), document.getElementById('notice').dataset.done === undefined]);
  return { text: said[0], isRefused: said[1] };
};
const sends = async (...words) => {
  const said = await send(...words);
  assert(!said.isRefused, `${words[0]}: ${said.text}`);
  passed(`action ${words[0]}`);
};

await page.goto(`${board.origin}/add`);
await sends('add', {}, { title: 'Added in the page', description: 'd', tags: 'page, new' });
const { id: added, tags } = board.state().tasks[0];
assert.deepEqual(tags, ['page', 'new']);
for (const id of ['t1', 't2', 't3', 't4', 't5']) await board.call('create_task', { id, title: `Title of ${id}`, description: 'd', max_attempts: 1 });
for (const id of ['r1', 'r2']) await board.call('create_task', { id, title: id, description: 'd', review: 'required' });
for (const agent of ['ada', 'bob']) await board.call('register_agent', { agent_id: agent, role: 'worker' });
for (const id of ['r1', 'r2']) {
  await board.call('claim_task', { agent_id: 'ada', task_id: id });
  await board.call('complete_task', { agent_id: 'ada', task_id: id, output: 'done' });
}
await board.call('claim_task', { agent_id: 'ada', task_id: 't1' });

await page.goto(`${board.origin}/`);
await isLive(page, 'on');
await sends('edit', { task: 't2' }, { priority: '2' });
assert.equal((await task('t2')).priority, 2);
await sends('assign', { task: 't3' }, { to: 'bob' });
assert.equal((await task('t3')).kept_for.agent, 'bob');
await sends('cancel', { task: 't4' }, { reason: 'not needed' });
assert.equal((await task('t4')).status, 'cancelled');
await sends('approve', { task: 'r1' });
assert.equal((await task('r1')).status, 'done');
await sends('reject', { task: 'r2' }, { reason: 'no tests' });
assert.equal((await task('r2')).status, 'available');
await board.call('ask_human', { agent_id: 'ada', question: 'Which one?', options: ['this', 'that'] });
await page.waitForSelector('#waits form[action="/do/answer"]');
await sends('answer', {}, { text: 'the third' });
const asked = await board.call('ask_human', { agent_id: 'ada', question: 'Which one?', options: ['this', 'that'] });
assert.equal(asked.answer, 'the third');

await page.goto(`${board.origin}/tasks/t4`);
await sends('retry', { task: 't4' });
await page.goto(`${board.origin}/tasks/${added}`);
await sends('edit', { task: added }, { title: 'Edited in the page', after: 't2', tags: 'edited' });
const edited = await task(added);
assert.deepEqual([edited.title, edited.dependencies, edited.tags], ['Edited in the page', ['t2'], ['edited']]);
await sends('link', { task: added }, { needs: 'title of t3' });
assert.deepEqual((await task(added)).dependencies, ['t2', 't3']);
await page.waitForSelector('form[action="/do/unlink"]:has([value=t3])');
await sends('unlink', { task: added, needs: 't2' });
assert.deepEqual((await task(added)).dependencies, ['t3']);
await page.goto(`${board.origin}/tasks/t3`);
const cycle = await send('link', { task: 't3' }, { needs: '#1' });
assert(cycle.isRefused && cycle.text.includes('#4 Title of t3 -> #1 Edited in the page -> #4 Title of t3'), cycle.text);
assert.deepEqual((await task('t3')).dependencies, []);
passed('a cycle is refused with its path');

await page.goto(`${board.origin}/agents/ada`);
await sends('message', { to: 'ada' }, { text: 'How far are you?' });
await sends('pause', { agent: 'ada' });
await sends('resume', { agent: 'ada' });
await sends('stop', { agent: 'ada' });
await page.goto(`${board.origin}/tasks/t1`);
await sends('release', { task: 't1' });
assert.equal((await task('t1')).status, 'available');
await page.goto(`${board.origin}/agents/ada`);
await board.call('resume', { agents: ['ada'] });
await board.call('claim_task', { agent_id: 'ada', task_id: 't1' });
await page.reload();
await sends('stop', { agent: 'ada', now: 'true' });
assert.equal((await task('t1')).status, 'available');

await page.goto(`${board.origin}/`);
await isLive(page, 'on');
await sends('pause', {});
await page.waitForSelector('form[action="/do/resume"]', { state: 'attached' });
await sends('resume', {});
// Everything moves up when the banner goes, and another row would be dragged.
await page.waitForSelector('#state .banner', { state: 'detached' });
const order = () => page.evaluate(() => [...document.querySelectorAll('#next [data-order] > [data-key]')].map((row) => row.dataset.key));
const before = await order();
await until('the last is the first', async () => {
  if ((await order())[0] === before.at(-1)) return true;
  // What is dragged is let go when the page changes just then.
  await page.dragAndDrop(`#next [data-order] > [data-key="${before.at(-1)}"]`, `#next [data-order] > [data-key="${before[0]}"]`);
  await page.waitForTimeout(500);
  return false;
});
passed('action reorder');

// What was decided on an older state is refused, in the page.
await page.evaluate(() => {
  // The page is kept as it was, as one is that slept.
  document.getElementById('live').remove();
});
await board.call('claim_task', { agent_id: 'bob', task_id: 't5' });
const stale = await send('cancel', { task: 't5' }, { reason: 'too late' });
assert(stale.isRefused && /nothing was done.*bob claimed/s.test(stale.text), stale.text);
assert.equal((await task('t5')).status, 'claimed');
passed('an action that comes too late is refused with what changed');

// Without script.
const plain = await watch.open(browser, board, null, { javaScriptEnabled: false, storageState: await page.context().storageState() });
await plain.goto(`${board.origin}/add`);
await plain.fill('form[action="/do/add"] [name=title]', 'Without script');
await plain.fill('form[action="/do/add"] [name=description]', 'd');
await plain.click('form[action="/do/add"] button');
assert.match(await plain.textContent('#notice'), /added/);
assert.equal(board.state().tasks.at(-1).title, 'Without script');
await plain.goto(`${board.origin}/tasks/${added}`);
await plain.locator('#facts summary', { hasText: 'Add' }).click();
await plain.fill('form[action="/do/link"] [name=needs]', '#3');
await plain.click('form[action="/do/link"] button');
assert.deepEqual((await task(added)).dependencies, ['t3', 't2']);
await plain.click('form[action="/do/unlink"]:has([value=t3]) button');
assert.deepEqual((await task(added)).dependencies, ['t2']);
passed('forms work without script');

// An observer sees everything and has no forms.
const token = JSON.parse(board.command('--json', 'token', 'add', 'eye', '--role', 'observer')).token;
const file = path.join(home, 'eye.token');
writeFileSync(file, token, { mode: 0o600 });
const observer = await watch.open(browser, board, board.freshLink('--server', board.url, '--token-file', file));
for (const address of ['/', '/tasks/t1', '/agents/ada', '/add']) {
  await observer.goto(board.origin + address);
  assert.equal(await observer.locator('form[method=post]').count(), 0, address);
}
passed('an observer has no forms');
for (const one of [page, observer, late]) await watch.check(one);
passed('nothing against the policy');
await browser.close();
await board.end();
