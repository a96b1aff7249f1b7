// The board of `examples/scene` as the README shows it: every part has something in it.
//
// Usage: node picture.mjs CALLBOARD DIRECTORY PICTURE

import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import path from 'node:path';

import { Board, Watch, isLive, launch, passed } from './board.mjs';

const [callboard, home, picture] = process.argv.slice(2);
const MOST_BYTES = 150_000;
/** Fewest rows of each list. */
const ROWS = {
  '#waits > ul': 5, '#work > ul': 4, '#next > ol': 3, '#retry-title + ul': 1, '#failed-title + ul': 1,
  '#done > ul': 5, '#blocked > ul': 2, '#latest > ul': 5,
};

const board = await new Board(callboard, home, path.join(home, '.coordination')).serve();
const browser = await launch();
const watch = new Watch();
const page = await watch.open(browser, board, board.link, { viewport: { width: 1280, height: 800 }, colorScheme: 'light' });
await isLive(page);
assert.match(await page.title(), /^\(\d+\) Port the parser to Rust/);
for (const [list, fewest] of Object.entries(ROWS)) {
  const rows = await page.locator(`${list} > li[data-key]`).count();
  assert(rows >= fewest, `${list}: ${rows}`);
}
const kinds = await page.$$eval('#waits .kind', (all) => all.map((one) => one.textContent));
for (const kind of ['Permission', 'Question', 'Review', 'Failed', 'No sign']) assert(kinds.includes(kind), `${kind}: ${kinds}`);
assert.match(await page.textContent('.far'), /\d+ of \d+ · .*an hour · about/);
passed('every part of the board has rows');

await page.evaluate(() => document.activeElement?.blur());
await page.screenshot({ path: picture, type: 'jpeg', quality: 75 });
const { size } = statSync(picture);
assert(size > 20_000 && size <= MOST_BYTES, `${size} bytes`);
await watch.check(page);
passed('the picture is small');
await browser.close();
await board.end();
