import asyncio

from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer
from pydantic_ai.providers.openai import OpenAIProvider
from server import COMMAND, HEADERS, MODEL, PROMPT, URL, report


def strict(schema):
    transformer = OpenAIJsonSchemaTransformer(schema, strict=True)
    transformer.walk()
    return transformer.is_strict_compatible


async def main():
    transport = StdioTransport(COMMAND[0], COMMAND[1:]) if COMMAND else StreamableHttpTransport(URL, headers=HEADERS)
    toolset = MCPToolset(transport)
    model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=MODEL, api_key="x"))
    agent = Agent(model, toolsets=[toolset])
    async with agent:
        report(tool for tool in await toolset.list_tools() if strict(tool.input_schema))
        await agent.run(PROMPT)


asyncio.run(main())
