"""The Python SDK, in each mode that it can connect with."""

import sys

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from server import COMMAND, HEADERS, URL, report, work


async def use(transport):
    async with Client(transport, mode=sys.argv[1]) as client:
        async def call(tool, arguments):
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, result.content
            return result.content[0].text

        report((await client.list_tools()).tools)
        await work(call)


async def main():
    if COMMAND:
        await use(StdioServerParameters(command=COMMAND[0], args=COMMAND[1:]))
    else:
        async with create_mcp_http_client(headers=HEADERS) as connections:
            await use(streamable_http_client(URL, http_client=connections))


anyio.run(main)
