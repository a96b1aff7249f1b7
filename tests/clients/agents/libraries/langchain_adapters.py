"""The adapters' tools, bound to a model as strict ones; the loop is the one of LangChain's own examples."""

import asyncio

from langchain_core.messages import HumanMessage
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from langchain_openai import ChatOpenAI
from server import COMMAND, HEADERS, MODEL, PROMPT, URL, report


async def main():
    if COMMAND:
        connection = {"transport": "stdio", "command": COMMAND[0], "args": COMMAND[1:]}
    else:
        connection = {"transport": "streamable_http", "url": URL, "headers": HEADERS}
    async with MultiServerMCPClient({"callboard": connection}).session("callboard") as session:
        tools = await load_mcp_tools(session)
        report(tools)
        model = ChatOpenAI(model="scripted", base_url=MODEL, api_key="x").bind_tools(tools, strict=True)
        named = {tool.name: tool for tool in tools}
        messages = [HumanMessage(PROMPT)]
        while True:
            answer = await model.ainvoke(messages)
            messages.append(answer)
            if not answer.tool_calls:
                break
            for call in answer.tool_calls:
                messages.append(await named[call["name"]].ainvoke({**call, "type": "tool_call"}))


asyncio.run(main())
