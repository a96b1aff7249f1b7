"""What a scripted model does: generators that yield calls, and are sent the reply to each.

The model holds no state between requests. It runs the script from its start against the results that the request carries,
so a client that repeats a request, or that drops one, hears the same.
"""

import json
import re
from dataclasses import dataclass, field


# The tools by which Claude Code and Qwen Code have the model search for others.
SEARCHES = ("ToolSearch", "tool_search")


@dataclass
class Call:
    """A call of a tool by its own name; the dialect finds what the client named it. `stand_in` does the same when the tool
    fails, or is no longer there."""

    tool: str
    arguments: dict = field(default_factory=dict)
    stand_in: "Call | None" = None


@dataclass
class Calls:
    """Several calls in one answer."""

    calls: list


class Reply:
    """The text that a tool answered, and the JSON object in it."""

    def __init__(self, text):
        self.text = text
        self.fields = first_object(text)

    def get(self, *path):
        value = self.fields
        for key in path:
            if not isinstance(value, dict) or key not in value:
                return None
            value = value[key]
        return value


def first_object(text):
    """Clients wrap an answer in lines of their own."""
    decoder = json.JSONDecoder()
    for brace in re.finditer(r"\{", text):
        try:
            found = decoder.raw_decode(text, brace.start())[0]
        except json.JSONDecodeError:
            continue
        # Some hand on the block that the text came in, or the whole result.
        blocks = found["content"] if isinstance(found.get("content"), list) else [found]
        texts = [block["text"] for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
        return first_object(texts[0]) if texts else found
    return {}


@dataclass
class Turn:
    """What a request says: the conversation so far, in no vendor's form."""

    tools: dict  # the client's name of each tool -> its schema
    results: list  # (tool as the client named it, text), oldest first
    prompt: str  # what the user asked first
    body: dict

    def named(self, tool):
        """How the client calls `tool`: `mcp__callboard__claim_task`, `callboard-claim_task` and others."""
        return next((name for name in self.tools if is_named(name, tool)), None)

    @property
    def revealed(self):
        """Tools that a search has told of, with their schemas: some clients go on hiding them from the vendor."""
        texts = [text for tool, text in self.results if tool in SEARCHES]
        found = [first_object(part) for text in texts for part in text.split("<function>")[1:]]
        return {one["name"]: one.get("parametersJsonSchema") for one in found if "name" in one}

    @property
    def texts(self):
        """Everything that the model is told."""
        return "\n".join(strings(self.body))


def is_named(name, tool):
    return name == tool or any(name.endswith(separator + tool) for separator in ("__", "_", "-", "."))


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)


def next_action(script, turn):
    """The script's next call after the results that are in, or the text it ends with."""
    steps = script(turn)
    results = [one for one in turn.results if one[0] not in SEARCHES]
    try:
        action = next(steps)
        while results:
            if isinstance(action, Calls):
                batch, results = results[: len(action.calls)], results[len(action.calls) :]
                action = steps.send([Reply(text) for _, text in batch])
                continue
            tool, text = results.pop(0)
            reply = Reply(text)
            # A client's own errors may quote the call, which is JSON, too; the board's replies all say `success`.
            if action.stand_in and is_named(tool, action.tool) and reply.get("success") is None:
                if not results:
                    return action.stand_in
                reply = Reply(results.pop(0)[1])
            action = steps.send(reply)
    except StopIteration as end:
        return end.value or "Done."
    if isinstance(action, Call) and action.stand_in and turn.named(action.tool) is None and turn.results:
        return action.stand_in
    return action


PROMPT = "Work on the board: register, claim a task, complete it."
OUTPUT = "Written and read again"


def one_task(turn):
    """Each id comes out of a reply."""
    registered = yield Call("register_agent", {"role": "worker"})
    agent = registered.get("agent_id") or registered.get("agent", "id")
    claimed = yield Call("claim_task", {"agent_id": agent})
    task = claimed.get("task", "id")
    yield Call("complete_task", {"agent_id": agent, "task_id": task, "output": OUTPUT})
    if turn.named("final_answer"):
        # smolagents ends by a tool of its own.
        yield Call("final_answer", {"answer": "Done."})
    return "Done."
