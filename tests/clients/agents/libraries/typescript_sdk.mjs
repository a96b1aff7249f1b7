// A TypeScript SDK: its package in node_modules, and for `@modelcontextprotocol/client` the era.

import { report, requireClient, server, work } from './server.mjs';

const [name, era] = process.argv.slice(2);
const parts = era ? ['', '/stdio'] : ['/client/index.js', '/client/stdio.js', '/client/streamableHttp.js'];
const sdk = Object.assign({}, ...parts.map((part) => requireClient(name + part)));

const options = era ? { versionNegotiation: { mode: era === '2026-07-28' ? { pin: era } : era } } : {};
const client = new sdk.Client({ name: 'callboard-tests', version: '1.0.0' }, options);
const failures = [];
client.onerror = (error) => failures.push(error);
await client.connect(
  server.url
    ? new sdk.StreamableHTTPClientTransport(new URL(server.url), { requestInit: { headers: server.headers } })
    : new sdk.StdioClientTransport({ command: server.command[0], args: server.command.slice(1) }),
);
report((await client.listTools()).tools);
await work(async (name, args) => {
  const result = await client.callTool({ name, arguments: args });
  if (result.isError) throw new Error(result.content[0].text);
  return result.content[0].text;
});
if (failures.length > 0) throw failures[0];
await client.close();
