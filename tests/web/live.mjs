// An open page while eight agents on stdio work through 200 tasks, in two tabs; a server that ends and
// comes back; a form that is being filled in meanwhile.
//
// Usage: node live.mjs CALLBOARD DIRECTORY

import assert from 'node:assert/strict';

import { Agent, Board, Watch, isLive, launch, passed, until } from './board.mjs';

const [callboard, home] = process.argv.slice(2);
const TASKS = 200;
const AGENTS = 8;

const board = await new Board(callboard, home).serve();
const tasks = Array.from({ length: TASKS }, (_, index) => ({
  id: `t${index}`, title: `Task ${index}`, description: `Do ${index}`,
  dependencies: index >= 20 ? [`t${index - 20}`] : [],
}));
await board.call('create_tasks_batch', { tasks });
const browser = await launch();
const watch = new Watch();

const page = await watch.open(browser, board, board.link);
assert(!page.url().includes('#'), 'the code stays out of the address');
const all = `${board.origin}/?rows=1000`;
await page.goto(all);
const other = await page.context().newPage();
watch.follow(other, board);
await other.goto(all);
for (const one of [page, other]) {
  await isLive(one, 'on');
  await one.evaluate(() => { window.unreloaded = true; });
}
passed('two tabs of one login are live');

/** What the page shows: the ids in each list. */
const shown = (one) => one.evaluate(() => Object.fromEntries(['next', 'work', 'done'].map((id) => [
  id, [...document.querySelectorAll(`#${id} [data-key]`)].map((card) => card.dataset.key),
])));
/** What the board says that pages show. */
const meant = async () => {
  const { next, done } = await board.call('get_board', { limit: 1000 });
  return { next: next.rows.map((row) => row.id), done: done.rows.map((row) => row.id) };
};

const agents = Array.from({ length: AGENTS }, (_, index) => new Agent(board, `agent-${index}`));
await Promise.all(agents.map((agent) => agent.call('register_agent', { role: 'worker' })));
let finished = 0;
let isAsleep = false;
const work = Promise.all(agents.map(async (agent) => {
  while (finished < TASKS) {
    const claimed = await agent.call('claim_task', { wait_seconds: 1 });
    const id = claimed.task?.id;
    if (!id) continue;
    await agent.call('start_task', { task_id: id });
    await agent.call('complete_task', { task_id: id, output: `${id} is done` });
    finished += 1;
  }
}));
// A tab in the background pauses, and catches up.
await until('some are done', () => finished > 20);
await other.evaluate(() => {
  Object.defineProperty(document, 'hidden', { configurable: true, get: () => true });
  document.dispatchEvent(new Event('visibilitychange'));
});
await until('more are done', () => finished > 60);
await other.evaluate(() => {
  delete document.hidden;
  document.dispatchEvent(new Event('visibilitychange'));
});
await work;
agents.forEach((agent) => agent.end());
assert.equal(board.state().tasks.filter((task) => task.status === 'done').length, TASKS);
const done = new Set(board.state().tasks.map((task) => task.id));
for (const one of [page, other]) {
  await until('the page shows all as done', async () => (await shown(one)).done.length === TASKS);
  const seen = await shown(one);
  assert.deepEqual(new Set(seen.done), done);
  assert.deepEqual(seen.next, []);
  assert.deepEqual(seen.done, (await meant()).done, 'in the order of the board');
  assert(await one.evaluate(() => window.unreloaded), 'no page was loaded anew');
}
passed('every card is where the state has it, in both tabs, without a reload');

// What is typed stays, whatever happens to the card around it.
await board.call('create_task', { id: 'typed', title: 'Typed', description: 'd' });
await page.waitForSelector('#next [data-key="typed"]');
await page.evaluate(() => { document.querySelector('#next [data-key="typed"] details').open = true; });
const reason = page.locator('#next [data-key="typed"] input[name=reason]');
await reason.fill('because I say');
await board.call('create_task', { id: 'first', title: 'First of all', description: 'd', priority: 1 });
await other.waitForSelector('#next [data-key="first"]');
await page.waitForSelector('#next [data-key="first"]');
assert.equal(await reason.inputValue(), 'because I say');
assert(await page.evaluate(() => document.querySelector('#next [data-key="typed"] details').open));
await board.call('cancel_task', { task_id: 'typed' });
await other.waitForSelector('#next [data-key="typed"]', { state: 'detached' });
await board.call('create_task', { id: 'later', title: 'Later', description: 'd' });
await other.waitForSelector('#next [data-key="later"]');
assert.equal(await reason.inputValue(), 'because I say', 'the card is gone elsewhere, and the text is not');
await reason.fill('');
await page.waitForSelector('#next [data-key="typed"]', { state: 'detached' });
await page.waitForSelector('#next [data-key="later"]');
passed('an open form keeps its text, and gives way when it is empty');

// The server ends, things happen, and it comes back.
await board.end('SIGKILL');
await isLive(page, 'off');
board.command('add', 'Made while it was away', '--title', 'Meanwhile');
await board.serve();
await isLive(page, 'on');
for (const one of [page, other]) {
  await until('the page catches up', async () => (await shown(one)).next.length === 3);
  assert.deepEqual((await shown(one)).next, (await meant()).next);
  assert(await one.evaluate(() => window.unreloaded), 'no page was loaded anew');
}
passed('a page outlives its server');

for (const one of [page, other]) await watch.check(one);
passed('nothing against the policy');
await browser.close();
await board.end();
