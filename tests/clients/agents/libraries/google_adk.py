import asyncio
import os

from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool.mcp_session_manager import StdioConnectionParams, StreamableHTTPConnectionParams
from google.adk.tools.mcp_tool.mcp_toolset import McpToolset
from mcp import StdioServerParameters
from server import COMMAND, HEADERS, MODEL, PROMPT, URL, report

os.environ.update(GOOGLE_API_KEY="x", GOOGLE_GEMINI_BASE_URL=MODEL)


async def main():
    if COMMAND:
        params = StdioConnectionParams(server_params=StdioServerParameters(command=COMMAND[0], args=COMMAND[1:]))
    else:
        params = StreamableHTTPConnectionParams(url=URL, headers=HEADERS)
    toolset = McpToolset(connection_params=params)
    declarations = [tool._get_declaration() for tool in await toolset.get_tools()]
    report(one for one in declarations if one)
    runner = InMemoryRunner(LlmAgent(name="worker", model="gemini-scripted", tools=[toolset]), app_name="callboard")
    await runner.run_debug(PROMPT, quiet=True)
    await runner.close()


asyncio.run(main())
