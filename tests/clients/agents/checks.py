"""The table: every client, and how it is checked behind a door."""

import json
import subprocess
from functools import partial
from pathlib import Path

from .model import Model
from .programs import HOOKED, PROGRAMS, prepare
from .project import ROOT, Failure
from .script import OUTPUT, PROMPT, one_task
from .worker import from_shell
from .vendor import faults

LIBRARIES = Path(__file__).resolve().parent / "libraries"
TOOLS = {file.stem for file in (ROOT / "schemas").glob("*.json")} - {"mcp-state", "openrpc", "plan"}


class Program:
    """An agent that people work with; its session goes against the scripted model."""

    toolset = "core"
    doors = ("stdio", "http")

    def __init__(self, program, hooks=False, quick=False):
        self.program, self.hooks, self.quick = program, hooks, quick
        self.title = program.title + (" with hooks" if hooks else "")

    def version(self, installed):
        return npm_version(installed, self.program.package)

    def run(self, project, task):
        with Model({self.program.name: one_task}) as model:
            env = prepare(self.program, project.main, model.url(self.program.name), self.hooks)
            try:
                project.main.run(self.program.command(PROMPT), env)
                said = judged(project, task, model, self.program.name)
                if self.hooks and "SessionStart" not in model.recorded(self.program.name)[0].turn.texts:
                    raise Failure(f"{said}, but no hook has told it anything")
                return said
            except Failure as failure:
                raise Failure(f"{failure} [{last_words(model, self.program.name)}]") from None
            finally:
                model.write(project.directory / "requests")


class Shell:
    """A program's own shell: what the agent types there is the agent's, never the person's."""

    toolset = "core"
    doors = ("stdio",)

    def __init__(self, program):
        self.program, self.title, self.quick = program, f"{program.title}, its shell", True

    def version(self, installed):
        return npm_version(installed, self.program.package)

    def run(self, project, task):
        with Model({self.program.name: partial(from_shell, project.callboard)}) as model:
            env = prepare(self.program, project.main, model.url(self.program.name), False)
            try:
                project.main.run(self.program.command(PROMPT), env)
            finally:
                model.write(project.directory / "requests")
            told = last_words(model, self.program.name)
        agent = next((one["id"] for one in project.json("agents")["agents"] if one["id"] != "human"), None)
        events = project.json("history", "--limit", "200")["events"]
        added = [event.get("actor") for event in events if event["kind"] == "tasks_created"]
        if not agent or len(added) != 2 or agent not in added:
            raise Failure(f"{agent} has typed nothing: {added} [{told}]")
        if any(event["kind"] == "paused" for event in events):
            raise Failure(f"the shell of {agent} paused the board [{told}]")
        return f"what {agent} types is its own, and pauses nothing"


class Library:
    """A library: `script` in `libraries/` connects, converts all tools and works, by a model if the library is an agent's."""

    toolset = "full"

    def __init__(self, title, package, script, *arguments, mcp1=False, model=True, quick=False, doors=("stdio", "http")):
        self.title, self.package, self.script, self.arguments = title, package, script, arguments
        self.mcp1, self.asks, self.quick, self.doors = mcp1, model, quick, doors

    def version(self, installed):
        if self.script.endswith(".mjs"):
            return npm_version(installed, self.package)
        code = f"import importlib.metadata; print(importlib.metadata.version({self.package!r}))"
        return output_of(self.python(installed), code)

    def python(self, installed):
        return installed.python_mcp1 if self.mcp1 else installed.python

    def run(self, project, task):
        place, installed = project.main, project.installed
        runtime = installed.node if self.script.endswith(".mjs") else self.python(installed)
        server = {"command": [*place.server, "--toolset", self.toolset]}
        if place.url:
            server = {"url": place.url, "headers": place.authorization}
        with Model({"library": one_task}) as model:
            # Each library adds the path of its vendor's interface.
            env = {"SERVER": json.dumps(server), "MODEL": model.url("library"), "NODE_MODULES": str(installed.modules)}
            try:
                said, _ = place.run([runtime, LIBRARIES / self.script, *self.arguments], env)
                listed = next(json.loads(line)["tools"] for line in said.splitlines() if line.startswith('{"tools"'))
                if listed != len(TOOLS):
                    raise Failure(f"converted {listed} of {len(TOOLS)} tools")
                return judged(project, task, model, "library" if self.asks else None) + f", {listed} tools"
            except Failure as failure:
                words = f" [{last_words(model, 'library')}]" if self.asks else ""
                raise Failure(f"{failure}{words}") from None
            finally:
                model.write(project.directory / "requests")


class Inspector:
    toolset = "full"
    doors = ("stdio", "http")
    quick = False

    def __init__(self, era):
        self.era, self.title = era, f"MCP Inspector, {era}"

    def version(self, installed):
        return npm_version(installed, "@modelcontextprotocol/inspector")

    def run(self, project, task):
        place = project.main
        server = {"type": "stdio", "command": place.server[0], "args": [*place.server[1:], "--toolset", self.toolset]}
        if place.url:
            server = {"type": "http", "url": place.url, "headers": place.authorization}
        (place.home / "servers.json").write_text(json.dumps({"mcpServers": {"callboard": server}}))

        def inspect(*words):
            command = ["mcp-inspector", "--cli", "--quiet", "--protocol-era", self.era, "--config", place.home / "servers.json"]
            said, _ = place.run([*command, "--server", "callboard", "--format", "json", *words])
            return json.loads(said)["result"]

        def call(tool, **arguments):
            words = [word for name, value in arguments.items() for word in ("--tool-arg", f"{name}={value}")]
            return json.loads(inspect("--method", "tools/call", "--tool-name", tool, *words)["content"][0]["text"])

        # Exit code 6 is a tool that another client cannot use.
        listed = len(inspect("--method", "tools/list", "--strict")["tools"])
        # Each command is a process of its own, and so is the server on stdio.
        agent = call("register_agent", role="worker", agent_id="inspector-1")["agent_id"]
        claimed = call("claim_task", agent_id=agent)["task"]["id"]
        call("complete_task", agent_id=agent, task_id=claimed, output=OUTPUT)
        if listed != len(TOOLS):
            raise Failure(f"lists {listed} of {len(TOOLS)} tools")
        return f"{judged(project, task)}, {listed} tools"


def judged(project, task, model=None, client=None):
    """What the board says of the task, and what the model's vendor received."""
    found = next(one for one in project.json("tasks")["tasks"] if one["id"] == task)
    if found["status"] != "done" or not found["claimed_by"] or OUTPUT not in str(found["result"]):
        raise Failure(f"the task is {found['status']}")
    said = f"done by {found['claimed_by']}"
    if client is None:
        return said
    request = model.recorded(client)[-1]
    told = {**request.turn.revealed, **request.turn.tools}
    schemas = {name: schema for name, schema in told.items() if own(name)}
    if not schemas:
        raise Failure(f"{said}, but no tool of the board among {sorted(request.turn.tools)}")
    wrong = [fault for name, schema in schemas.items() for fault in faults(request.vendor, name, schema)]
    if wrong:
        raise Failure(f"{said}, but {len(wrong)} faults in {len(schemas)} schemas: {'; '.join(wrong[:4])}")
    return f"{said}, {len(schemas)} schemas"


def own(name):
    """Whether it is a tool of the board, by what the client calls it."""
    return name in TOOLS or ("callboard" in name and any(name.endswith(tool) for tool in TOOLS))


def last_words(model, client):
    requests = model.recorded(client)
    if not requests:
        return f"asked the model nothing, or had no tools: {len(model.requests)} requests"
    results = requests[-1].turn.results
    return f"{len(results)} calls answered" + (f", the last: {results[-1][1][:500]}" if results else "")


def npm_version(installed, package):
    return json.loads((installed.modules / package / "package.json").read_text())["version"]


def output_of(python, code):
    return subprocess.check_output([python, "-c", code], text=True).strip()


def sdk(title, package, *arguments):
    return Library(title, package, "typescript_sdk.mjs", package, *arguments, model=False)


ERAS = ("legacy", "auto")
QUICK = ("claude", "codex", "gemini", "qwen", "cline")
OLDER = ("1.18", "1.19", "1.20", "1.21", "1.22", "1.23", "1.32")
CHECKS = [
    *(Program(program, quick=program.name in QUICK) for program in PROGRAMS),
    *(Program(program, hooks=True) for program in HOOKED),
    *(Shell(program) for program in PROGRAMS if program.name in ("claude", "codex", "gemini")),
    *(Library(f"Python SDK, {era}", "mcp", "python_sdk.py", era, model=False) for era in ERAS),
    *(sdk(f"TypeScript SDK, {era}", "@modelcontextprotocol/client", era) for era in ERAS),
    *(sdk(f"TypeScript SDK {minor}", f"sdk-{minor}") for minor in OLDER),
    *(Library(f"fastmcp, {era}", "fastmcp", "fast_mcp.py", era, model=False) for era in ERAS),
    Library("smolagents", "smolagents", "smol_agents.py", mcp1=True, quick=True),
    Library("google-genai", "google-genai", "google_genai.py", quick=True),
    Library("google-adk", "google-adk", "google_adk.py", mcp1=True),
    Library("openai-agents, strict", "openai-agents", "openai_agents.py"),
    Library("pydantic-ai", "pydantic-ai-slim", "pydantic_ai_agent.py"),
    Library("langchain, strict", "langchain-mcp-adapters", "langchain_adapters.py", mcp1=True),
    Library("AI SDK", "@ai-sdk/mcp", "ai_sdk.mjs"),
    Library("Mastra", "@mastra/mcp", "mastra.mjs", quick=True),
    Inspector("legacy"),
    Inspector("modern"),
    # Clients that know only stdio reach a URL by it.
    Library("mcp-remote", "mcp-remote", "mcp_remote.mjs", model=False, doors=("http",)),
]
