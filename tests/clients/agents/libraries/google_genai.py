"""The session itself is the tool: google-genai converts the server's tools, and calls what the model asks for."""

import asyncio
from contextlib import AsyncExitStack

from google import genai
from google.genai import types
from google.genai._mcp_utils import mcp_to_gemini_tools
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from server import COMMAND, HEADERS, MODEL, PROMPT, URL, report


async def main():
    async with AsyncExitStack() as stack:
        if COMMAND:
            transport = stdio_client(StdioServerParameters(command=COMMAND[0], args=COMMAND[1:]))
        else:
            connections = await stack.enter_async_context(create_mcp_http_client(headers=HEADERS))
            transport = streamable_http_client(URL, http_client=connections)
        streams = await stack.enter_async_context(transport)
        session = await stack.enter_async_context(ClientSession(*streams[:2]))
        await session.initialize()
        report(mcp_to_gemini_tools((await session.list_tools()).tools))
        client = genai.Client(api_key="x", http_options=types.HttpOptions(base_url=MODEL))
        # An object would be copied, which sessions of this SDK do not allow.
        await client.aio.models.generate_content(model="scripted", contents=PROMPT, config={"tools": [session]})


asyncio.run(main())
