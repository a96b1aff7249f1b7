// The AI SDK: its MCP client's tools, given to `generateText`.

import { PROMPT, model, report, requireClient, server } from './server.mjs';

const { createMCPClient } = requireClient('@ai-sdk/mcp');
const { Experimental_StdioMCPTransport: StdioTransport } = requireClient('@ai-sdk/mcp/mcp-stdio');
const { createOpenAICompatible } = requireClient('@ai-sdk/openai-compatible');
const { generateText, isStepCount } = requireClient('ai');

const transport = server.url
  ? { type: 'http', url: server.url, headers: server.headers }
  : new StdioTransport({ command: server.command[0], args: server.command.slice(1) });
const client = await createMCPClient({ transport });
const tools = await client.tools();
report(Object.keys(tools));
const provider = createOpenAICompatible({ name: 'scripted', baseURL: model, apiKey: 'x' });
await generateText({ model: provider('scripted'), tools, prompt: PROMPT, stopWhen: isStepCount(6) });
await client.close();
