"""Drives callboard with the Python SDK (PyPI `mcp` 2.3), in both eras: `callboard mcp` on stdio, or `callboard serve`.

Usage: python_sdk.py CALLBOARD DIRECTORY stdio|http
"""

import json
import re
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

CONTRACT = json.loads(Path(__file__).with_name("contract.json").read_text(encoding="utf-8"))
PROTOCOLS = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
KINDS = {"<string>": str, "<number>": (int, float), "<list>": list, "<object>": dict, "<any>": object}


def filled(value, names):
    """`value` with what its `$NAME`s mean."""
    if isinstance(value, dict):
        return {key: filled(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, names) for item in value]
    return names[value[1:]] if isinstance(value, str) and value.startswith("$") else value


def check(found, wanted, names, place):
    if isinstance(wanted, dict):
        assert isinstance(found, dict), f"{place}: {found!r} is no object"
        for key, item in wanted.items():
            assert key in found, f"{place} has no {key}: {found!r}"
            check(found[key], item, names, f"{place}.{key}")
    elif isinstance(wanted, list):
        assert isinstance(found, list) and len(found) == len(wanted), f"{place}: {found!r}, wanted {wanted!r}"
        for index, item in enumerate(wanted):
            check(found[index], item, names, f"{place}[{index}]")
    elif isinstance(wanted, str) and wanted.startswith("<id "):
        assert isinstance(found, str) and found, f"{place}: {found!r} is no id"
        names[wanted[4:-1]] = found
    elif wanted == "<time>":
        assert isinstance(found, str) and TIME.fullmatch(found), f"{place}: {found!r} is no time"
    elif isinstance(wanted, str) and wanted in KINDS:
        assert isinstance(found, KINDS[wanted]), f"{place}: {found!r} is no {wanted}"
    else:
        wanted = filled(wanted, names)
        assert type(found) is type(wanted) and found == wanted, f"{place}: {found!r}, wanted {wanted!r}"


async def answer(client, tool, arguments):
    """The reply, which must be the same as text and as structured content."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, f"{tool} {arguments}: {result.content[0].text}"
    assert [block.type for block in result.content] == ["text"], result.content
    assert json.loads(result.content[0].text) == result.structured_content, f"{tool}: text and structure differ"
    return result.structured_content


async def refusal(client, tool, arguments):
    result = await client.call_tool(tool, arguments)
    assert result.is_error, f"{tool} {arguments} was not refused: {result.structured_content}"
    return result.content[0].text


async def error_of(awaitable):
    try:
        found = await awaitable
    except MCPError as error:
        return error
    raise AssertionError(f"no protocol error: {found!r}")


async def lists(client, mode):
    assert client.protocol_version == PROTOCOLS[mode], client.protocol_version
    assert client.server_info is None or client.server_info.name == "callboard", client.server_info
    tools = (await client.list_tools()).tools
    missing = set(CONTRACT["tools"]) - {tool.name for tool in tools}
    assert not missing, f"not listed: {missing}"
    for tool in tools:
        assert tool.description and tool.input_schema["type"] == "object", tool
        assert tool.annotations.open_world_hint is False, tool
    uris = {str(resource.uri) for resource in (await client.list_resources()).resources}
    assert uris >= {*CONTRACT["resources"], "coordination://agents"}, uris
    templates = [one.uri_template for one in (await client.list_resource_templates()).resource_templates]
    assert templates == ["coordination://tasks/{id}", "coordination://discoveries/{tag}"], templates
    prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
    assert prompts == ["work", "lead"], prompts


async def contract(client, names):
    for number, step in enumerate(CONTRACT["steps"]):
        tool, arguments = step["tool"], filled(step["arguments"], names)
        place = f"step {number}, {tool}"
        if "refusal" in step:
            message = await refusal(client, tool, arguments)
            for text in filled(step["refusal"], names):
                assert text in message, f"{place}: {message!r} does not name {text!r}"
        else:
            check(await answer(client, tool, arguments), step["reply"], names, place)
    used = {step["tool"] for step in CONTRACT["steps"] if "reply" in step}
    assert used == set(CONTRACT["tools"]), used ^ set(CONTRACT["tools"])


async def errors(client):
    error = await error_of(client.call_tool("no_such_tool", {}))
    assert error.error.code == -32602 and "no_such_tool" in error.error.message, error.error
    error = await error_of(client.read_resource("coordination://nowhere"))
    assert error.error.code in (-32602, -32002) and "coordination://nowhere" in error.error.message, error.error
    error = await error_of(client.get_prompt("lead", {}))
    assert error.error.code == -32602 and "goal" in error.error.message, error.error


async def resources(client, names):
    async def read(uri):
        (content,) = (await client.read_resource(uri)).contents
        assert content.mime_type == "application/json" and str(content.uri) == uri, content
        return json.loads(content.text)

    for uri, tool in CONTRACT["resources"].items():
        found = await read(uri)
        assert found == await answer(client, tool, {}), f"{uri} is not what {tool} answers: {found}"
    agents = await read("coordination://agents")
    assert [agent["id"] for agent in agents["agents"]] == ["lead", "worker-1"], agents
    task = await read(f"coordination://tasks/{names['schema']}")
    assert task["task"]["id"] == names["schema"] and task["task"]["status"] == "done", task


async def prompts(client):
    for name, arguments, text in [("work", {}, "claim_task"), ("lead", {"goal": "Fly to Mars"}, "Fly to Mars")]:
        (message,) = (await client.get_prompt(name, arguments)).messages
        assert message.role == "user" and text in message.content.text, message


async def cancelled_claim(client):
    """A claim that waits and is called off takes no task; if it were still waiting, it would take the new one."""
    await answer(client, "register_agent", {"agent_id": "worker-2", "role": "worker"})
    async with anyio.create_task_group() as group:
        ended = []

        async def wait():
            reply = await client.call_tool("claim_task", {"agent_id": "worker-2", "wait_seconds": 50})
            ended.append(reply)

        group.start_soon(wait)
        # Each is a round trip behind the claim.
        for _ in range(3):
            await answer(client, "get_status", {})
        assert not ended, ended
        group.cancel_scope.cancel()
    await answer(client, "get_status", {})
    created = await answer(client, "create_task", {"description": "Left alone"})
    task = created["task"]["id"]
    available = await answer(client, "get_all_tasks", {"status_filter": "available"})
    assert task in [one["id"] for one in available["tasks"]], available
    claimed = await answer(client, "claim_task", {"agent_id": "worker-2"})
    assert claimed["success"] and claimed["task"]["id"] == task and claimed["attempt"] == 1, claimed
    assert "already" not in claimed, claimed


@asynccontextmanager
async def stdio(command, directory, board, mode):
    env = {"COORDINATION_DIR": str(board)}
    server = StdioServerParameters(command=command, args=["mcp"], env=env, cwd=directory)
    async with Client(server, mode=mode) as client:
        yield client


@asynccontextmanager
async def http(command, directory, board, mode):
    arguments = [command, "--dir", board, "--json", "serve", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(arguments, cwd=directory, stdout=subprocess.PIPE) as server:
        try:
            announced = json.loads(server.stdout.readline())
            headers = {"Authorization": f"Bearer {announced['token']}"}
            async with create_mcp_http_client(headers=headers) as connections:
                transport = streamable_http_client(announced["mcp"], http_client=connections)
                async with Client(transport, mode=mode) as client:
                    yield client
        finally:
            server.terminate()
        assert server.wait(10) == 0, server.returncode


async def drive(command, directory, mode, door):
    board = directory / f"python-{door.__name__}-{mode}"
    board.mkdir()
    names = {}
    async with door(command, directory, board, mode) as client:
        for part, run in [
            ("lists", lambda: lists(client, mode)),
            ("contract", lambda: contract(client, names)),
            ("errors", lambda: errors(client)),
            ("resources", lambda: resources(client, names)),
            ("prompts", lambda: prompts(client)),
            ("cancelled_claim", lambda: cancelled_claim(client)),
        ]:
            with anyio.fail_after(60):
                await run()
            print(f"PASS python {door.__name__} {mode} {part}", flush=True)
    state = json.loads((board / "mcp-state.json").read_text(encoding="utf-8"))
    assert len(state["tasks"]) == 5 and set(state["agents"]) == {"lead", "worker-1", "worker-2"}, state
    print(f"PASS python {door.__name__} {mode} state_file", flush=True)


def main():
    command, directory, door = sys.argv[1], Path(sys.argv[2]), {"stdio": stdio, "http": http}[sys.argv[3]]
    for mode in PROTOCOLS:
        anyio.run(drive, command, directory, mode, door)


main()
