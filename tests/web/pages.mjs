// Every page, with hostile texts in every field: nothing is executed, nothing foreign is asked for, nothing
// violates the policy or the rules of axe; a picture of each.
//
// Usage: node pages.mjs CALLBOARD DIRECTORY PICTURES

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import path from 'node:path';

import { Board, Watch, axeSource, launch, passed } from './board.mjs';

const [callboard, home, pictures] = process.argv.slice(2);
mkdirSync(pictures, { recursive: true });

const HOSTILE = [
  '<script>alert("script")</script>',
  '"><img src=x onerror=alert("attribute")>',
  `'-alert('quote')-'`,
  '<svg onload=alert("svg")>',
  'javascript:alert("address")',
  '[link](javascript:alert("markdown"))',
  '![image](https://evil.example/pixel.png)',
  '<a href="https://evil.example/" hx-get="/do/cancel" hx-trigger="load">x</a>',
  '<hx-partial hx-target="body"><img src=x onerror=alert("partial")></hx-partial>',
  '</textarea></title></style><script>alert("end")</script>',
  '<template><script>alert("template")</script></template>',
  '{{constructor.constructor("alert(1)")()}}',
  '<meta http-equiv="refresh" content="0;url=https://evil.example/">',
  '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
  '<base href="https://evil.example/">',
  '\u202e<form action="https://evil.example/"><button>x',
];
const all = HOSTILE.join(' ');
const short = (index) => HOSTILE[index % HOSTILE.length].slice(0, 150);

const board = new Board(callboard, home);
board.command('init', `Port <b>the parser</b> ${short(0)}`);
await board.serve();
await board.call('create_task', { id: 'root', title: short(1), description: all, hints: all, tags: [short(3).slice(0, 90)] });
for (const [index, text] of HOSTILE.entries()) {
  await board.call('create_task', {
    id: `h${index}`, title: text.slice(0, 150), description: `${all}\n\n# ${text}\n\n- ${text}`, dependencies: index > 9 ? ['root'] : [],
    context_files: [`src/${index}/${text.replaceAll('/', '_')}`.slice(0, 200)], hints: all, metadata: { [text]: text }, review: index === 3 ? 'required' : undefined,
  });
}
for (const agent of ['ada', 'bob', 'eve']) await board.call('register_agent', { agent_id: agent, role: 'worker', capabilities: [short(2).slice(0, 90)] });
const work = async (agent, task, values) => {
  await board.call('claim_task', { agent_id: agent, task_id: task });
  await board.call('start_task', { agent_id: agent, task_id: task });
  await board.call('heartbeat', { agent_id: agent, note: all });
  return values;
};
await work('ada', 'h0');
await board.call('complete_task', { agent_id: 'ada', task_id: 'h0', output: all, branch: 'work/h0', files_modified: ['src/a.rs'] });
await work('ada', 'h3');
await board.call('complete_task', { agent_id: 'ada', task_id: 'h3', output: all });
await work('ada', 'h1');
await board.call('fail_task', { agent_id: 'ada', task_id: 'h1', error: all, final: true });
await work('bob', 'h2');
await board.call('ask_human', { agent_id: 'bob', question: all, options: [short(1), short(3)] });
await board.call('send_message', { agent_id: 'bob', to: 'human', text: all });
await work('eve', 'h4');
await board.call('report_waiting', { agent_id: 'eve', for: 'permission', what: short(0), where: short(3) });
await board.call('add_discovery', { agent_id: 'eve', content: all, tags: [short(5).slice(0, 90)] });
await board.call('reserve_files', { agent_id: 'eve', files: ['src/**/*.rs'], task_id: 'h4' });
await board.call('create_snapshot', { label: short(4) });
await board.call('pause', { agents: ['bob'], reason: all });
await board.call('cancel_task', { task_id: 'h5', reason: all });

const ADDRESSES = [
  '/', '/agents', '/agents/bob', '/tasks', '/tasks/h0', '/tasks/h1', '/tasks/h3', '/tasks/h2', '/tasks/root', '/tasks/h0/diff',
  '/graph', '/timeline', '/events', '/plan', '/files', '/search?q=%3Cscript%3E', '/discoveries', '/snapshots', '/keys', '/add', '/login', '/nothing',
];
const browser = await launch();
const heard = { '/snapshots': [/\d\d:\d\d/, /javascript:alert/, /\t\d+$/m], '/login': [/callboard web --link/] };
const watch = new Watch();

const first = await watch.open(browser, board, board.link);
await first.waitForLoadState('load');
const sizes = await first.evaluate(() => performance.getEntries()
  .filter((entry) => ['navigation', 'resource'].includes(entry.entryType) && !entry.name.includes('/live'))
  .map((entry) => [entry.name, entry.decodedBodySize]));
const total = sizes.reduce((sum, [, size]) => sum + size, 0);
console.log(`first load: ${total} bytes of ${sizes.length} files`);
assert(total <= 150_000, JSON.stringify(sizes));
passed('the first load is small');

// What a timeline has to show before it is scrolled: now, and whose the bars are.
const hidden = () => {
  const at = (element) => element.getBoundingClientRect();
  const view = at(document.querySelector('#timeline .scroll'));
  const [now, name] = [at([...document.querySelectorAll('#timeline .grid')].at(-1)), at(document.querySelector('#timeline .names a'))];
  return [
    ...(now.left > view.left && now.right <= view.right ? [] : ['it does not start at its newest end']),
    ...(name.left >= view.left && name.right < view.right ? [] : ['the agents have no names']),
  ];
};

const state = await first.context().storageState();
const faults = [];
for (const colorScheme of ['light', 'dark']) {
  for (const width of [360, 1280, 2560]) {
    const page = await watch.open(browser, board, null, {
      colorScheme, viewport: { width, height: 900 }, storageState: state, reducedMotion: 'reduce',
    });
    for (const address of ADDRESSES) {
      await page.goto(board.origin + address, { waitUntil: 'load' });
      // axe is put in by the browser itself, so the policy does not apply to it.
      await page.evaluate(axeSource);
      const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
      for (const { id, nodes } of found.violations) {
        faults.push(`${colorScheme} ${width} ${address} ${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(' | ')}`);
      }
      for (const wanted of heard[address] ?? []) {
        const text = await page.innerText('main');
        if (!wanted.test(text)) faults.push(`${address}: no ${wanted} in ${text}`);
      }
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (wide > 0) faults.push(`${colorScheme} ${width} ${address}: ${wide} pixels too wide`);
      if (address === '/timeline') faults.push(...(await page.evaluate(hidden)).map((one) => `${width} ${address}: ${one}`));
      const name = address === '/' ? 'board' : address.slice(1).replaceAll(/[^a-z0-9]+/gi, '-');
      await page.screenshot({ path: path.join(pictures, `${name}-${width}-${colorScheme}.png`), fullPage: true });
      await watch.check(page);
    }
    await page.context().close();
  }
}
assert.deepEqual(faults, []);
passed('no text is executed, nothing foreign is asked for, nothing is against the policy');
passed('axe finds nothing in any page, light and dark, at 360, 1280 and 2560 pixels');
await browser.close();
await board.end();
