// Mastra: its MCP client's tools, given to an agent.

import { PROMPT, model, report, requireClient, server } from './server.mjs';

const { createOpenAICompatible } = requireClient('@ai-sdk/openai-compatible');
const { Agent } = requireClient('@mastra/core/agent');
const { MCPClient } = requireClient('@mastra/mcp');

const callboard = server.url
  ? { url: new URL(server.url), requestInit: { headers: server.headers } }
  : { command: server.command[0], args: server.command.slice(1) };
// Mastra tells the server this name as the client's. No agent is called so; the board makes another name.
const client = new MCPClient({ servers: { callboard } });
const tools = await client.listTools();
report(Object.keys(tools));
const provider = createOpenAICompatible({ name: 'scripted', baseURL: model, apiKey: 'x' });
const agent = new Agent({ id: 'worker', name: 'worker', instructions: 'Work.', model: provider('scripted'), tools });
await agent.generate(PROMPT, { maxSteps: 6 });
await client.disconnect();
