// Drives callboard with the TypeScript SDKs, `callboard mcp` on stdio or `callboard serve`: npm
// `@modelcontextprotocol/client` 2.4 in both eras, `@modelcontextprotocol/sdk` 1.32 as the client that most of today's IDEs
// are built with, and 1.18 as the oldest one that is met: it fails on an event without data.
//
// Usage: node typescript_sdk.mjs CALLBOARD DIRECTORY stdio|http, with the packages in CALLBOARD_NODE_MODULES.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { createInterface } from 'node:readline';

const [command, directory, door] = process.argv.slice(2);
const require = createRequire(path.join(path.resolve(process.env.CALLBOARD_NODE_MODULES ?? 'node_modules'), 'any.js'));
const modern = { ...require('@modelcontextprotocol/client'), ...require('@modelcontextprotocol/client/stdio') };
const [older, oldest] = ['@modelcontextprotocol/sdk', 'sdk-1.18'].map((sdk) => ({
  ...require(`${sdk}/client/index.js`),
  ...require(`${sdk}/client/stdio.js`),
  ...require(`${sdk}/client/streamableHttp.js`),
}));

const CONTRACT = JSON.parse(readFileSync(new URL('contract.json', import.meta.url), 'utf8'));
const INFO = { name: 'callboard-tests', version: '1.0.0' };
const CLIENTS = {
  sdk: { sdk: older, options: {}, protocol: undefined },
  'sdk-1.18': { sdk: oldest, options: {}, protocol: undefined },
  legacy: { sdk: modern, options: { versionNegotiation: { mode: 'legacy' } }, protocol: '2025-11-25' },
  auto: { sdk: modern, options: { versionNegotiation: { mode: 'auto' } }, protocol: '2026-07-28' },
  '2026-07-28': { sdk: modern, options: { versionNegotiation: { mode: { pin: '2026-07-28' } } }, protocol: '2026-07-28' },
};
const KINDS = {
  '<string>': (value) => typeof value === 'string',
  '<number>': (value) => typeof value === 'number',
  '<list>': Array.isArray,
  '<object>': (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  '<any>': () => true,
  '<time>': (value) => typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(value),
};

/** `value` with what its `$NAME`s mean. */
function filled(value, names) {
  if (Array.isArray(value)) return value.map((item) => filled(item, names));
  if (KINDS['<object>'](value)) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, filled(item, names)]));
  }
  return typeof value === 'string' && value.startsWith('$') ? names[value.slice(1)] : value;
}

function check(found, wanted, names, place) {
  const shown = `${place}: ${JSON.stringify(found)}, wanted ${JSON.stringify(wanted)}`;
  if (Array.isArray(wanted)) {
    assert(Array.isArray(found) && found.length === wanted.length, shown);
    wanted.forEach((item, index) => check(found[index], item, names, `${place}[${index}]`));
  } else if (KINDS['<object>'](wanted)) {
    assert(KINDS['<object>'](found), shown);
    for (const [key, item] of Object.entries(wanted)) {
      assert(key in found, `${place} has no ${key}: ${JSON.stringify(found)}`);
      check(found[key], item, names, `${place}.${key}`);
    }
  } else if (typeof wanted === 'string' && wanted.startsWith('<id ')) {
    assert(typeof found === 'string' && found !== '', shown);
    names[wanted.slice(4, -1)] = found;
  } else if (Object.hasOwn(KINDS, wanted)) {
    assert(KINDS[wanted](found), shown);
  } else {
    assert.equal(found, filled(wanted, names), shown);
  }
}

/** The reply, which must be the same as text and as structured content. */
async function answer(client, name, args, options) {
  const result = await client.callTool({ name, arguments: args }, ...options ?? []);
  assert(!result.isError, `${name} ${JSON.stringify(args)}: ${result.content[0]?.text}`);
  assert.deepEqual(result.content.map((block) => block.type), ['text']);
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent, `${name}: text and structure differ`);
  return result.structuredContent;
}

async function refusal(client, name, args) {
  const result = await client.callTool({ name, arguments: args });
  assert(result.isError, `${name} ${JSON.stringify(args)} was not refused: ${JSON.stringify(result)}`);
  return result.content[0].text;
}

async function lists({ client, protocol }) {
  if (protocol) assert.equal(client.getNegotiatedProtocolVersion(), protocol);
  assert.equal(client.getServerVersion()?.name, 'callboard');
  const { tools } = await client.listTools();
  const names = tools.map((tool) => tool.name);
  assert.deepEqual(CONTRACT.tools.filter((name) => !names.includes(name)), []);
  for (const tool of tools) {
    assert(tool.description && tool.inputSchema.type === 'object', JSON.stringify(tool));
    assert.equal(tool.annotations.openWorldHint, false);
  }
  const uris = (await client.listResources()).resources.map((resource) => resource.uri);
  const missing = [...Object.keys(CONTRACT.resources), 'coordination://agents'].filter((uri) => !uris.includes(uri));
  assert.deepEqual(missing, []);
  const { resourceTemplates } = await client.listResourceTemplates();
  const templates = resourceTemplates.map((template) => template.uriTemplate);
  assert.deepEqual(templates, ['coordination://tasks/{id}', 'coordination://discoveries/{tag}']);
  assert.deepEqual((await client.listPrompts()).prompts.map((prompt) => prompt.name), ['work', 'lead']);
}

async function contract({ client, names }) {
  for (const [number, step] of CONTRACT.steps.entries()) {
    const place = `step ${number}, ${step.tool}`;
    const args = filled(step.arguments, names);
    if (step.refusal) {
      const message = await refusal(client, step.tool, args);
      for (const text of filled(step.refusal, names)) assert(message.includes(text), `${place}: ${message}, not ${text}`);
    } else {
      check(await answer(client, step.tool, args), step.reply, names, place);
    }
  }
}

async function errors({ client }) {
  const rejected = (text) => (error) => {
    assert([-32602, -32002].includes(error.code), `${error.code} ${error.message}`);
    assert(error.message.includes(text), error.message);
    return true;
  };
  await assert.rejects(client.callTool({ name: 'no_such_tool', arguments: {} }), rejected('no_such_tool'));
  await assert.rejects(client.readResource({ uri: 'coordination://nowhere' }), rejected('coordination://nowhere'));
  await assert.rejects(client.getPrompt({ name: 'lead', arguments: {} }), rejected('goal'));
}

async function resources({ client, names }) {
  const read = async (uri) => {
    const { contents } = await client.readResource({ uri });
    assert.deepEqual(contents.map((one) => [one.uri, one.mimeType]), [[uri, 'application/json']]);
    return JSON.parse(contents[0].text);
  };
  for (const [uri, tool] of Object.entries(CONTRACT.resources)) {
    assert.deepEqual(await read(uri), await answer(client, tool, {}), uri);
  }
  const { agents } = await read('coordination://agents');
  assert.deepEqual(agents.map((agent) => agent.id), ['lead', 'worker-1']);
  const { task } = await read(`coordination://tasks/${names.schema}`);
  assert.deepEqual([task.id, task.status], [names.schema, 'done']);
}

async function prompts({ client }) {
  const texts = { work: [{}, 'claim_task'], lead: [{ goal: 'Fly to Mars' }, 'Fly to Mars'] };
  for (const [name, [args, text]] of Object.entries(texts)) {
    const { messages } = await client.getPrompt({ name, arguments: args });
    assert.equal(messages.length, 1);
    assert.equal(messages[0].role, 'user');
    assert(messages[0].content.text.includes(text), messages[0].content.text);
  }
}

/** A claim that waits and is called off takes no task; if it were still waiting, it would take the new one. */
async function cancelledClaim({ client, sdk }) {
  await answer(client, 'register_agent', { agent_id: 'worker-2', role: 'worker' });
  const abort = new AbortController();
  const options = { signal: abort.signal };
  // The older SDKs have a schema in second place.
  const rest = sdk !== modern ? [undefined, options] : [options];
  let ended = false;
  const waiting = answer(client, 'claim_task', { agent_id: 'worker-2', wait_seconds: 50 }, rest).finally(() => {
    ended = true;
  });
  const rejected = assert.rejects(waiting);
  // Each is a round trip behind the claim.
  for (let round = 0; round < 3; round += 1) await answer(client, 'get_status', {});
  assert(!ended, 'the claim did not wait');
  abort.abort('called off');
  await rejected;
  await answer(client, 'get_status', {});
  const { task } = await answer(client, 'create_task', { description: 'Left alone' });
  const available = await answer(client, 'get_all_tasks', { status_filter: 'available' });
  assert(available.tasks.some((one) => one.id === task.id), JSON.stringify(available));
  const claimed = await answer(client, 'claim_task', { agent_id: 'worker-2' });
  assert.deepEqual([claimed.task?.id, claimed.attempt, claimed.already], [task.id, 1, undefined]);
}

const PARTS = { lists, contract, errors, resources, prompts, cancelled_claim: cancelledClaim };

const DOORS = {
  stdio: async (sdk, board) => {
    const env = { ...sdk.getDefaultEnvironment(), COORDINATION_DIR: board };
    return { transport: new sdk.StdioClientTransport({ command, args: ['mcp'], env, cwd: directory }), end: () => {} };
  },
  http: async (sdk, board) => {
    const args = ['--dir', board, '--json', 'serve', '--listen', '127.0.0.1:0'];
    const server = spawn(command, args, { cwd: directory, stdio: ['ignore', 'pipe', 'inherit'] });
    // One that is left behind keeps our standard error open, and whoever reads it waits.
    process.on('exit', () => server.kill('SIGKILL'));
    const [announced] = await once(createInterface({ input: server.stdout }), 'line');
    const { mcp, token } = JSON.parse(announced);
    const requestInit = { headers: { Authorization: `Bearer ${token}` } };
    const end = async () => {
      const ended = once(server, 'exit');
      server.kill();
      assert.deepEqual(await ended, [0, null]);
    };
    return { transport: new sdk.StreamableHTTPClientTransport(new URL(mcp), { requestInit }), end };
  },
};

async function drive(mode) {
  const { sdk, options, protocol } = CLIENTS[mode];
  const board = path.join(directory, `typescript-${door}-${mode}`);
  mkdirSync(board);
  const client = new sdk.Client(INFO, options);
  const { transport, end } = await DOORS[door](sdk, board);
  await client.connect(transport);
  const session = { client, sdk, protocol, names: {} };
  for (const [part, run] of Object.entries(PARTS)) {
    await run(session);
    console.log(`PASS typescript ${door} ${mode} ${part}`);
  }
  await client.close();
  await end();
  const state = JSON.parse(readFileSync(path.join(board, 'mcp-state.json'), 'utf8'));
  assert.equal(state.tasks.length, 5);
  assert.deepEqual(Object.keys(state.agents).sort(), ['lead', 'worker-1', 'worker-2']);
  console.log(`PASS typescript ${door} ${mode} state_file`);
}

try {
  for (const mode of Object.keys(CLIENTS)) await drive(mode);
} catch (error) {
  console.error(error);
  process.exit(1);
}
