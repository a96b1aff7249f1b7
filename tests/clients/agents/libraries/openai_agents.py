"""With strict schemas. Only a tool with an object that takes any member may be sent as one that is not strict."""

import asyncio

from agents import Agent, AsyncOpenAI, OpenAIResponsesModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp, MCPUtil
from server import COMMAND, HEADERS, MODEL, PROMPT, URL, report

set_tracing_disabled(True)


def has_free_object(schema):
    if schema.get("type") == "object" and not schema.get("properties"):
        return True
    inner = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return any(has_free_object(one) for one in inner)


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
        report(tool for tool in tools if tool.strict_json_schema or has_free_object(tool.params_json_schema))
        await Runner.run(agent, PROMPT)


asyncio.run(main())
