import asyncio
import sys

from fastmcp import Client
from server import COMMAND, HEADERS, URL, report, work


async def main():
    entry = {"url": URL, "headers": HEADERS} if URL else {"command": COMMAND[0], "args": COMMAND[1:]}
    async with Client({"mcpServers": {"callboard": entry}}, mode=sys.argv[1]) as client:
        async def call(tool, arguments):
            return (await client.call_tool(tool, arguments)).content[0].text

        report(await client.list_tools())
        await work(call)


asyncio.run(main())
