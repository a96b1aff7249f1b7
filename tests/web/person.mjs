// A person at the page: keys, copying, being told in the background, and a page too many.
//
// Usage: node person.mjs CALLBOARD DIRECTORY

import assert from 'node:assert/strict';
import http from 'node:http';

import { Board, Watch, isLive, launch, passed, until } from './board.mjs';

const [callboard, home] = process.argv.slice(2);
const board = await new Board(callboard, home).serve();
const browser = await launch();
const watch = new Watch();
const page = await watch.open(browser, board, board.link);
const context = page.context();
const { origin } = board;
await context.grantPermissions(['notifications', 'clipboard-read', 'clipboard-write'], { origin });

// Copying: an empty board offers commands.
const offered = page.locator('#waits .command').first();
const command = await offered.locator('code').textContent();
assert.match(command, /^callboard plan import /);
const button = offered.locator('button');
await button.click();
await until('it is said', async () => (await button.textContent()) === 'copied');
assert.equal(await page.evaluate(() => navigator.clipboard.readText()), command);
await until('the button is as before', async () => (await button.textContent()) === 'copy');
await page.evaluate(() => {
  navigator.clipboard.writeText = async () => { throw new Error('not allowed'); };
});
await button.click();
await until('it says what to do', async () => (await button.textContent()) === 'press Ctrl+C');
assert.equal(await page.evaluate(() => getSelection().toString().trim()), command);
passed('copy buttons fill the clipboard, or choose the text where they may not');

// Keys.
for (const id of ['t1', 't2', 't3', 'w1']) await board.call('create_task', { id, title: `Title of ${id}`, description: 'd' });
await board.call('register_agent', { agent_id: 'ada', role: 'worker' });
await board.call('claim_task', { agent_id: 'ada', task_id: 'w1' });
await board.call('report_waiting', { agent_id: 'ada', for: 'permission', what: 'Bash: ls', where: 'tmux 1:3' });
await page.goto(`${origin}/`);
await isLive(page);
const at = () => page.evaluate(() => {
  const card = document.activeElement?.closest('[data-key]');
  return card && `${card.closest('section').id} ${card.dataset.key}`;
});
const press = async (key) => {
  await page.keyboard.press(key);
  return at();
};
const walk = [];
for (const key of ['j', 'k', 'l', 'l', 'j', 'j', 'j', 'k', 'h', 'h', 'h']) walk.push(await press(key));
assert.deepEqual(walk.map((place) => place?.replace(/^(waits) .*/, '$1')), [
  'waits', 'waits', 'work ada', 'next t1', 'next t2', 'next t3', 'next t3', 'next t2', 'work ada', 'waits', 'waits',
]);
assert.equal(await press('/'), null);
const search = page.locator('[data-search]');
assert(await search.evaluate((field) => field === document.activeElement));
await page.keyboard.type('j/k?');
assert.equal(await search.inputValue(), 'j/k?', 'in a field, keys are letters');
await page.keyboard.press('Escape');
assert(await page.evaluate(() => document.activeElement === document.body));
await press('j');
await press('l');
assert.equal(await press('l'), 'next t1');
await page.keyboard.press('Enter');
await page.waitForURL(`${origin}/tasks/t1`);
await page.keyboard.press('?');
await page.waitForURL(`${origin}/keys`);
const told = await page.$$eval('#keys kbd', (keys) => keys.map((key) => key.textContent));
for (const key of ['/', 'j', 'k', 'l', 'h', 'Enter', '?']) assert(told.includes(key), key);
passed('keys move, open, search and explain themselves');

// Notifications, from a page in the background.
await context.addInitScript(() => {
  const Real = window.Notification;
  window.told = [];
  window.Notification = class extends Real {
    constructor(title, options) {
      super(title, options);
      window.told.push(`${title}: ${options.body}`);
    }
  };
});
await page.goto(`${origin}/keys`);
assert.equal(await page.evaluate(() => Notification.permission), 'granted');
assert(await page.locator('[data-notify]').isHidden(), 'who has allowed it is not asked');
await page.goto(`${origin}/`);
await isLive(page);
const notified = () => page.evaluate(() => window.told);
const ask = (question) => board.call('ask_human', { agent_id: 'ada', question, options: ['yes', 'no'] });
const isShown = (text) => until(text, () => page.evaluate((wanted) => document.querySelector('#waits').innerText.includes(wanted), text));
await ask('Which comes first?');
await ask('Seen at once?');
await isShown('Seen at once?');
assert.match(await page.title(), /^\(2\) /);
assert.deepEqual(await notified(), [], 'who looks at the page is not told');
const look = (isHidden) => page.evaluate((hidden) => {
  Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event('visibilitychange'));
}, isHidden);
await look(true);
await board.call('create_task', { id: 't4', title: 'Title of t4', description: 'd' });
await page.waitForSelector('#next [data-key="t4"]');
assert.deepEqual(await notified(), [], 'what does not wait for the person is not told');
await ask('Seen in the background?');
const first = await until('a notification', async () => (await notified())[0]);
assert.equal(first, '(3) Board without a goal: Question Q3 · ada: Seen in the background?');
await look(false);
await ask('Seen again?');
await isShown('Seen again?');
assert.equal((await notified()).length, 1);
passed('a question is told where the page is not looked at');

// Every page counts what waits, and one of those that are open tells it, unless one is looked at.
const others = [];
for (const [address, title] of [['/timeline', 'Timeline'], ['/keys', 'Keys'], ['/tasks/w1/diff', 'Changes of Title of w1'], ['/tasks/w1', '#4 Title of w1']]) {
  const other = await context.newPage();
  watch.follow(other, board);
  await other.goto(origin + address);
  await isLive(other);
  await until('its diff, if it has one', () => other.evaluate(() => !document.querySelector('[data-load]')));
  assert.equal(await other.title(), `(4) ${title} · callboard`);
  others.push([other, title]);
}
const all = [page, ...others.map(([other]) => other)];
const tellings = async () => {
  const said = await Promise.all(all.map((one) => one.evaluate(() => navigator.locks.query().then(() => window.told))));
  return said.flat();
};
// What a page in the background wants to tell waits until the test lets it.
const hides = (one, isHidden) => one.evaluate((hidden) => {
  Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });
  if (window.late) return;
  const { setTimeout } = window;
  Object.assign(window, { late: [], setTimeout: (run, time, ...given) => (time === 1000 ? window.late.push(() => run(...given)) : setTimeout(run, time, ...given)) });
}, isHidden);
const wants = (ones) => Promise.all(ones.map((one) => until(`${one.url()} wants to tell`, () => one.evaluate(() => window.late.length > 0))));
const go = (ones) => Promise.all(ones.map((one) => one.evaluate(() => window.late.splice(0).forEach((run) => run()))));
for (const one of all) await hides(one, true);
await ask('Told by one?');
await wants(all);
for (const [other, title] of others) await until(title, async () => (await other.title()) === `(5) ${title} · callboard`);
assert.equal((await tellings()).length, 1, 'nobody has told it yet');
await go(all);
await until('one tells', async () => (await tellings()).length > 1);
assert.deepEqual((await tellings()).slice(1), ['(5) Board without a goal: Question Q5 · ada: Told by one?']);
await hides(page, false);
await ask('Looked at?');
await wants(all.slice(1));
await until('the page that is looked at has it', () => page.evaluate(() => navigator.locks.query().then(({ held }) => held.some(({ name }) => name.includes(' Q6 ')))));
await go(all.slice(1));
assert.equal((await tellings()).length, 2, 'one page is looked at');
for (const [other] of others) {
  await watch.check(other);
  await other.close();
}
passed('every page counts what waits, and one of them tells it');

// A page too many says so, and is live once there is room.
const [cookie] = await context.cookies();
const open = [];
const stream = () => new Promise((resolve, reject) => {
  const headers = { Host: new URL(origin).host, Cookie: `${cookie.name}=${cookie.value}` };
  const request = http.get(`${board.url}/live?page=%2F`, { agent: false, headers }, (response) => {
    response.on('error', () => {});
    open.push(request);
    resolve(response);
  });
  request.on('error', reject);
});
let last;
while ((last = await stream()).statusCode === 200);
assert.equal(last.statusCode, 503);
assert(Number(last.headers['retry-after']) > 0 && open.length > 100);
await page.goto(`${origin}/agents`);
await isLive(page, 'off');
assert.equal(await page.textContent('#live-sign'), 'not live: too many pages are open');
assert.match(await page.textContent('main'), /ada/);
for (const request of open) request.destroy();
await until('there is room', async () => {
  await page.reload();
  return until('the page has asked', () => page.evaluate(() => document.documentElement.dataset.live)).then((sign) => sign === 'on');
});
await page.route(/\/live\?/, (route) => route.fulfill({ status: 503, headers: { 'Retry-After': '1' } }), { times: 1 });
await page.goto(`${origin}/`);
await isLive(page, 'off');
await isLive(page, 'on');
passed('a page too many says so, and asks again');
await watch.check(page);
passed('nothing against the policy');
await browser.close();
await board.end();
