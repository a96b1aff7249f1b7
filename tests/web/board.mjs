// A board with a server and Chromium in front of it, for the tests beside this file.
//
// Packages are found in CALLBOARD_NODE_MODULES, the browser in CALLBOARD_CHROMIUM.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { createInterface } from 'node:readline';

const require = createRequire(path.join(path.resolve(process.env.CALLBOARD_NODE_MODULES ?? 'node_modules'), 'any.js'));
const { chromium } = require('playwright-core');
export const axeSource = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');


export const PATIENCE = Number(process.env.CALLBOARD_PATIENCE ?? 60_000);
export const passed = (name) => console.log(`PASS ${name}`);

/** Asks until there is an answer. Only here does a test wait for what it cannot be told of. */
export async function until(what, ask) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    assert(Date.now() < end, `not in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The policy of our pages forbids what Playwright's own waiting for a function is made of. */
export const isLive = (page, sign = 'on') =>
  until(`the page is ${sign}`, () => page.evaluate((wanted) => document.documentElement.dataset.live === wanted, sign));

export class Board {
  constructor(callboard, home, dir = path.join(home, 'board')) {
    this.callboard = callboard;
    this.dir = dir;
    this.env = { ...process.env, HOME: home, COORDINATION_DIR: this.dir };
    this.home = home;
  }

  command(...words) {
    const { status, stdout, stderr } = spawnSync(this.callboard, words, { env: this.env, cwd: this.home, encoding: 'utf8' });
    assert.equal(status, 0, `${words.join(' ')}: ${stdout} ${stderr}`);
    return stdout;
  }

  /** Starts a server, on the port that the last one had. */
  async serve() {
    const listen = `127.0.0.1:${this.port ?? 0}`;
    this.process = spawn(this.callboard, ['--json', 'serve', '--listen', listen], {
      env: this.env, cwd: this.home, stdio: ['ignore', 'pipe', 'inherit'],
    });
    // A test that fails leaves no server behind.
    const server = this.process;
    process.once('exit', () => server.kill('SIGKILL'));
    const lines = createInterface({ input: this.process.stdout });
    const { value } = await lines[Symbol.asyncIterator]().next();
    Object.assign(this, JSON.parse(value));
    this.port = new URL(this.url).port;
    this.origin = new URL(this.link).origin;
    return this;
  }

  async end(signal = 'SIGTERM') {
    const ended = new Promise((resolve) => this.process.once('exit', resolve));
    this.process.kill(signal);
    await ended;
  }

  /** The reply of an operation. */
  async call(method, params = {}) {
    const answer = await fetch(`${this.url}/rpc`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${this.token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    const { result, error } = await answer.json();
    assert(!error, `${method} ${JSON.stringify(params)}: ${error?.message}`);
    return result;
  }

  freshLink(...words) {
    return JSON.parse(this.command('--json', 'web', '--link', ...words)).link;
  }

  state() {
    return JSON.parse(readFileSync(path.join(this.dir, 'mcp-state.json'), 'utf8'));
  }
}

export async function launch() {
  const executablePath = process.env.CALLBOARD_CHROMIUM ?? '/usr/bin/chromium';
  // No sandbox can be made as root; nothing but this board is opened.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return chromium.launch({ executablePath, args: [...args, '--disable-gpu', '--disable-dev-shm-usage'] });
}

/** What a page did that none of ours may: it is empty at the end of a test. */
export class Watch {
  constructor() {
    this.faults = [];
    this.bytes = 0;
  }

  /** A page of a browser that is logged in by this link, if there is one. */
  async open(browser, board, link, options = {}) {
    const context = await browser.newContext(options);
    await context.addInitScript(() => {
      window.executed = [];
      window.alert = (text) => window.executed.push(text);
      window.violations = [];
      addEventListener('securitypolicyviolation', (event) => {
        window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
      });
    });
    const page = await context.newPage();
    this.follow(page, board);
    if (link) {
      await page.goto(link);
      await page.waitForURL(`${board.origin}/`);
    }
    return page;
  }

  follow(page, board) {
    page.on('request', (request) => {
      const url = new URL(request.url());
      if (url.origin !== board.origin) this.faults.push(`a foreign request: ${url}`);
    });
    page.on('pageerror', (error) => this.faults.push(`an error in ${page.url()}: ${error.stack}`));
    page.on('dialog', (dialog) => {
      this.faults.push(`a dialog in ${page.url()}: ${dialog.message()}`);
      dialog.dismiss();
    });
    page.on('console', (message) => {
      // What fails because the server was ended on purpose is no fault.
      const isExpected = /ERR_CONNECTION_REFUSED|htmx:sse:error|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|status of (4|503)/.test(message.text());
      if (message.type() === 'error' && !isExpected) this.faults.push(`on the console of ${page.url()}: ${message.text()}`);
    });
  }

  async check(page) {
    const [executed, violations] = await page.evaluate(() => [window.executed, window.violations]);
    this.faults.push(...executed.map((text) => `executed in ${page.url()}: ${text}`));
    this.faults.push(...violations.map((text) => `against the policy in ${page.url()}: ${text}`));
    assert.deepEqual(this.faults, []);
  }
}

/** One agent on stdio. */
export class Agent {
  constructor(board, name) {
    this.name = name;
    this.last = 0;
    this.process = spawn(board.callboard, ['mcp'], { env: board.env, cwd: board.home, stdio: ['pipe', 'pipe', 'ignore'] });
    this.lines = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
  }

  async call(tool, values = {}) {
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    };
    const params = { name: tool, arguments: { agent_id: this.name, ...values }, _meta };
    const id = ++this.last;
    this.process.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })}\n`);
    for (;;) {
      const { value } = await this.lines.next();
      const message = JSON.parse(value);
      if (message.id !== id) continue;
      assert(!message.error && !message.result.isError, `${tool}: ${value}`);
      return message.result.structuredContent;
    }
  }

  end() {
    this.process.stdin.end();
  }
}
