"""With strict schemas: each tool that takes arguments has to be sent as a strict one."""

import asyncio

from agents import Agent, AsyncOpenAI, OpenAIResponsesModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp, MCPUtil
from server import COMMAND, HEADERS, MODEL, PROMPT, URL, report

set_tracing_disabled(True)


async def main():
    if COMMAND:
        server = MCPServerStdio({"command": COMMAND[0], "args": COMMAND[1:]}, client_session_timeout_seconds=30)
    else:
        server = MCPServerStreamableHttp({"url": URL, "headers": HEADERS}, client_session_timeout_seconds=30)
    async with server:
        model = OpenAIResponsesModel("scripted", AsyncOpenAI(base_url=MODEL, api_key="x"))
        strict = {"convert_schemas_to_strict": True}
        agent = Agent(name="worker", model=model, mcp_servers=[server], mcp_config=strict)
        tools = [MCPUtil.to_function_tool(tool, server, convert_schemas_to_strict=True) for tool in await server.list_tools()]
        # The library takes an object without members for one with any.
        report(tool for tool in tools if tool.strict_json_schema or not tool.params_json_schema["properties"])
        await Runner.run(agent, PROMPT)


asyncio.run(main())
