from mcp import StdioServerParameters
from server import COMMAND, HEADERS, MODEL, PROMPT, URL, report
from smolagents import MCPClient, OpenAIServerModel, ToolCallingAgent

if COMMAND:
    server = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])
else:
    server = {"url": URL, "transport": "streamable-http", "headers": HEADERS}
with MCPClient(server, structured_output=False) as tools:
    report(tools)
    model = OpenAIServerModel("scripted", api_base=MODEL, api_key="x")
    ToolCallingAgent(tools, model, max_steps=6, verbosity_level=0).run(PROMPT)
