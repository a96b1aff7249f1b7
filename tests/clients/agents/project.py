"""A project with a board in it, one way to its server, and the places in it where clients work."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 90
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
# Nothing listens there: a client that asks for anything beyond loopback gets no answer.
NOWHERE = "http://127.0.0.1:9"
# No updates, no telemetry, no lists from elsewhere.
QUIET = {
    "LANG": "C.UTF-8",
    "NO_COLOR": "1",
    "CI": "true",
    "HTTP_PROXY": NOWHERE, "HTTPS_PROXY": NOWHERE, "http_proxy": NOWHERE, "https_proxy": NOWHERE,
    "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost",
    "DO_NOT_TRACK": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "COPILOT_OFFLINE": "true",
    "COPILOT_AUTO_UPDATE": "false",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "FASTMCP_CHECK_FOR_UPDATES": "off",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "LANGSMITH_TRACING": "false",
    "HF_HUB_OFFLINE": "1",
}
# Claude Code does not skip its questions as root, unless it is told that this is a sandbox.
AS_ROOT = {"IS_SANDBOX": "1"}
AUTHOR = {
    "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.org",
    "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@example.org",
}


class Failure(Exception):
    pass


class Place:
    """A directory of the project, and the home of the client that works in it."""

    def __init__(self, project, repository, home):
        self.project, self.repository, self.home = project, repository, home
        home.mkdir(parents=True, exist_ok=True)

    @property
    def url(self):
        return self.project.url

    @property
    def server(self):
        """The command that starts the server on stdio."""
        return [str(self.project.callboard), "mcp", "--agent", "auto"]

    @property
    def authorization(self):
        return {"Authorization": f"Bearer {self.project.token}"}

    def connect(self, client, *options):
        url = ["--url", self.url] if self.url else []
        self.run([self.project.callboard, "connect", client, *options, *url])

    def env(self):
        path = [str(self.project.callboard.parent), self.project.installed.path, os.environ["PATH"]]
        found = {
            **QUIET, **AS_ROOT, **AUTHOR,
            "PATH": os.pathsep.join(path),
            "HOME": str(self.home),
            "CODEX_HOME": str(self.home / ".codex"),
        }
        if self.project.token:
            found["CALLBOARD_TOKEN"] = self.project.token
        return found

    def start(self, command, env=None, **streams):
        """A process in a group of its own, so that what it starts ends with it."""
        return subprocess.Popen(
            [str(word) for word in command], cwd=self.repository, env={**self.env(), **(env or {})},
            stdin=subprocess.DEVNULL, start_new_session=True, text=True, errors="replace", **streams,
        )

    def run(self, command, env=None, patience=PATIENCE):
        """Standard output and error: some clients write to the wrong one."""
        name = Path(str(command[0])).name
        process = self.start(command, env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, error = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            end_group(process)
            out, error = process.communicate()
            raise Failure(f"{name} does not end within {patience} s: {tail(out + error)}") from None
        if process.returncode != 0:
            raise Failure(f"{name}: exit code {process.returncode}: {tail(out + error, 500)}")
        return ESCAPES.sub("", out), ESCAPES.sub("", error)


class Project:
    """A git repository with one commit, and in it a board. `url` is the server's, if that is the door."""

    def __init__(self, directory, callboard, installed, goal="Connect every client"):
        self.directory, self.callboard, self.installed = directory, callboard, installed
        self.url = self.token = self.process = None
        shutil.rmtree(directory, ignore_errors=True)
        (directory / "project").mkdir(parents=True)
        self.main = Place(self, directory / "project", directory / "home")
        (self.main.repository / "README.md").write_text("A project\n")
        for words in (["init", "-q", "-b", "main", "."], ["add", "-A"], ["commit", "-qm", "Begin"]):
            self.main.run(["git", *words])
        self.main.run([callboard, "init", goal])

    def serve(self, *options):
        command = [self.callboard, "--json", "serve", "--listen", "127.0.0.1:0", *options]
        self.process = self.main.start(command, stdout=subprocess.PIPE)
        announced = json.loads(self.process.stdout.readline())
        self.url, self.token = announced["mcp"], announced["token"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.terminate()
            self.process.wait(10)

    def json(self, *words):
        return json.loads(self.main.run([self.callboard, "--json", *words])[0])


def tail(text, length=1500):
    return ESCAPES.sub("", text).strip()[-length:]


def end_group(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def built():
    subprocess.run(["cargo", "build", "--quiet"], cwd=ROOT, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve() / "debug/callboard"
