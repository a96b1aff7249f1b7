"""How a member of the team works: claim, a branch for the task, what others did, a file, a commit, complete; until the end."""

import json
import re
import shlex

from .script import Call, Calls, first_object

MEMBER = "Work on the board until it is finished, with a branch for each task."
SUBAGENT = "You are a subagent"
# Kept short: a claim that waits is a call that a client may give up on.
WAIT = 20
MOST_CLAIMS = 200
ENDED = "did what it was asked for"


class Member:
    """One agent's calls; its shell is known by the tools that its client has."""

    def __init__(self, turn):
        self.turn, self.agent, self.by_shell = turn, None, None

    def shell(self, command):
        for tool, key in (("Bash", "command"), ("exec_command", "cmd"), ("run_shell_command", "command"), ("bash", "command")):
            if tool in self.turn.tools:
                described = {"description": "Work on the task"} if key == "command" and tool != "bash" else {}
                return Call(tool, {key: command, **described})
        raise ValueError(f"no shell among {sorted(self.turn.tools)}")

    def call(self, tool, **arguments):
        """If the tools are gone, what `register_agent` said of the shell stands in for them."""
        arguments = {"agent_id": self.agent, **arguments}
        quoted = shlex.quote(json.dumps(arguments))
        command = self.by_shell.replace("NAME", tool).replace("'JSON'", quoted)
        return Call(tool, arguments, stand_in=self.shell(command))

    def register(self):
        registered = yield Call("register_agent", self.told_arguments())
        self.agent = registered.get("agent_id")
        self.by_shell = registered.get("shell") or f"callboard --agent {self.agent} call NAME 'JSON'"

    def told_arguments(self):
        """As the client's hooks have told the agent, if they have."""
        told = [first_object(text) for text in re.findall(r"register_agent (\{.*)", self.turn.texts)]
        return told[-1] if told and self.turn.prompt.startswith(SUBAGENT) else {"role": "worker"}

    def task(self, claimed):
        task, file = claimed.get("task", "id"), claimed.get("task", "context", "files")[0]
        merges = [command for command in strings_under(claimed.fields, "next") if command.startswith("git merge")]
        steps = [f"git switch -q -c work/{task}", *merges, f"mkdir -p src && echo 'by {self.agent}' >> {file}"]
        yield self.shell(" && ".join(steps))
        yield self.call("heartbeat", task_id=task, note=f"{file} is written, next: commit")
        yield self.shell(f"git add src && git commit -qm 'Write {file}' && git log -1 --format=%h")
        yield self.call("complete_task", task_id=task, output=f"{file} has a line", files_created=[file])


def strings_under(value, key):
    if isinstance(value, dict):
        if isinstance(value.get(key), str):
            yield value[key]
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from strings_under(inner, key)


def member(turn):
    """Works until the board says that it is finished."""
    if turn.prompt.startswith(SUBAGENT):
        return (yield from subagent(turn))
    me = Member(turn)
    yield from me.register()
    return (yield from work(me, MOST_CLAIMS))


def leader(turn):
    """Has three subagents begin, then works itself."""
    if turn.prompt.startswith(SUBAGENT):
        return (yield from subagent(turn))
    me = Member(turn)
    yield from me.register()
    asked = {"subagent_type": "general-purpose", "isolation": "worktree", "description": "One task"}
    prompts = [f"{SUBAGENT} {number}: do one task of the board." for number in (1, 2, 3)]
    yield Calls([Call("Agent", {**asked, "prompt": prompt}) for prompt in prompts])
    return (yield from work(me, MOST_CLAIMS))


def subagent(turn):
    """One task, in a worktree that the client made for it."""
    me = Member(turn)
    yield from me.register()
    return (yield from work(me, 1))


def work(me, most):
    """Until the board says that it is finished, or `most` tasks are done."""
    done = 0
    for _ in range(MOST_CLAIMS):
        claimed = yield me.call("claim_task", wait_seconds=WAIT)
        if claimed.get("task"):
            yield from me.task(claimed)
            done += 1
            if done == most:
                return f"{me.agent}: {ENDED}"
        elif claimed.get("verdict") != "wait":
            return f"{me.agent}: {claimed.get('verdict') or claimed.text[:500]}"
    return f"{me.agent}: still waiting"


def from_shell(callboard, turn):
    """Registers by a tool, and goes on in the client's shell."""
    member = Member(turn)
    yield from member.register()
    yield member.shell(f"{callboard} pause; {callboard} add 'Typed in the shell'")
    return "Done."
