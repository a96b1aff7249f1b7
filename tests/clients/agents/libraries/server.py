"""What the libraries' scripts share: the server and the model that the environment names, and the work itself."""

import json
import os

SERVER = json.loads(os.environ["SERVER"])
COMMAND, URL, HEADERS = SERVER.get("command"), SERVER.get("url"), SERVER.get("headers")
MODEL = os.environ["MODEL"]
PROMPT = "Work on the board: register, claim a task, complete it."
OUTPUT = "Written and read again"


async def work(call):
    """Registers, claims and completes; `call` calls a tool and returns its text."""
    agent = json.loads(await call("register_agent", {"role": "worker"}))["agent_id"]
    task = json.loads(await call("claim_task", {"agent_id": agent}))["task"]["id"]
    await call("complete_task", {"agent_id": agent, "task_id": task, "output": OUTPUT})


def report(tools):
    """How many tools the library has made its own."""
    print(json.dumps({"tools": len(list(tools))}))
