// mcp-remote stands between a client that knows only stdio and a server behind a URL. On stdio there is no need of it.

import { report, requireClient, server, work } from './server.mjs';

const sdk = { ...requireClient('sdk-1.32/client/index.js'), ...requireClient('sdk-1.32/client/stdio.js') };
const [[name, value]] = Object.entries(server.headers);
const proxy = requireClient.resolve('mcp-remote/dist/proxy.js');
const args = [proxy, server.url, '--allow-http', '--transport', 'http-only', '--header', `${name}:${value}`];
const client = new sdk.Client({ name: 'callboard-tests', version: '1.0.0' });
await client.connect(new sdk.StdioClientTransport({ command: process.execPath, args, env: process.env }));
report((await client.listTools()).tools);
await work(async (tool, given) => {
  const result = await client.callTool({ name: tool, arguments: given });
  if (result.isError) throw new Error(result.content[0].text);
  return result.content[0].text;
});
await client.close();
