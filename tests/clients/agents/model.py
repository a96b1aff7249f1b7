"""A scripted model on loopback. Real clients are pointed at it; each has a path of its own, `/NAME`, and a script.

Every request is recorded, so that what a vendor would have received can be checked.
"""

import json
import threading
import zlib
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .dialects import DIALECTS, Gemini, event
from .script import SEARCHES, Call, Calls, Turn, next_action

# Titles and summaries are asked for with no tools, or hardly any.
FEWEST_TOOLS = 3
# Claude Code may keep an MCP server's tools back until they are searched for. Qwen Code does, and has `BRIDGE` call them.
BRIDGE, PREFIX = "tool_call", "mcp__callboard__"
USED = ["register_agent", "claim_task", "heartbeat", "complete_task"]


@dataclass
class Request:
    client: str
    vendor: str
    path: str
    body: dict
    turn: Turn


class Model:
    """`scripts` maps a client's name to its script: a function from the turn to a generator of calls."""

    def __init__(self, scripts, pause=0.0, before=lambda client, prompt, calls: None):
        """`before` is told of the calls before the client is."""
        self.scripts, self.pause, self.before = scripts, pause, before
        self.requests, self.others, self.actions = [], [], []
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), endpoint(self))
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, client):
        return f"http://127.0.0.1:{self.server.server_port}/{client}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.server.shutdown()
        self.server.server_close()

    def recorded(self, client):
        """Requests of the conversation itself, with tools."""
        return [one for one in self.requests if one.client == client and len(one.turn.tools) >= FEWEST_TOOLS]

    def write(self, directory):
        """Keeps the requests as files, one each."""
        directory.mkdir(parents=True, exist_ok=True)
        for number, one in enumerate(self.requests, 1):
            text = json.dumps({"path": one.path, "body": one.body}, indent=1)
            (directory / f"{one.client}-{number:04}.json").write_text(text)

    def answer(self, client, path, body):
        dialect = next((one for one in DIALECTS if one.understands(path)), None)
        if dialect is None or client not in self.scripts:
            with self.lock:
                self.others.append((client, path))
            return {"input_tokens": 5, "data": [], "models": []}
        request = Request(client, dialect.__name__, path, body, dialect.turn(body))
        with self.lock:
            self.requests.append(request)
            number = len(self.requests)
        action = self.action(request)
        if dialect is Gemini and Gemini.streams(path, body):
            return [event(dialect.answer(body, number, action))]
        return dialect.answer(body, number, action)

    def action(self, request):
        """Text, or a list of calls by the client's names."""
        turn = request.turn
        if len(turn.tools) < FEWEST_TOOLS or request.body.get("max_tokens") == 1:
            return "Scripted"
        self.stopped.wait(self.pause)
        action = next_action(self.scripts[request.client], turn)
        if not isinstance(action, str):
            wanted = action.calls if isinstance(action, Calls) else [action]
            action = named(wanted, turn)
            self.before(request.client, turn.prompt, action)
        with self.lock:
            self.actions.append((request.client, turn.prompt, action))
        return action


def named(wanted, turn):
    """The calls by the client's names, or a search for those that it keeps back."""
    search = next((tool for tool in SEARCHES if tool in turn.tools), None)
    searched = any(tool in SEARCHES for tool, _ in turn.results)
    if search and not searched and any(turn.named(call.tool) is None for call in wanted):
        query = "select:" + ",".join(PREFIX + tool for tool in USED)
        return [Call(search, {"query": query, "max_results": len(USED)})]
    prefix = PREFIX if searched else ""
    names = [turn.named(call.tool) or prefix + call.tool for call in wanted]
    calls = [Call(name, filled(call.arguments, turn.tools.get(name))) for name, call in zip(names, wanted, strict=True)]
    return [bridged(call) if BRIDGE in turn.tools and call.tool not in turn.tools else call for call in calls]


def bridged(call):
    return Call(BRIDGE, {"name": call.tool, "arguments": call.arguments})


def filled(arguments, schema):
    """With what the client requires: strict conversion makes everything required, and a model then fills in nothing."""
    schema = schema or {}
    properties = schema.get("properties") or {}
    missing = [name for name in schema.get("required", []) if name not in arguments]
    # Gemini CLI adds it to every tool, and forwards it.
    forwarded = {"wait_for_previous": True} if "wait_for_previous" in properties else {}
    return {**arguments, **forwarded, **{name: nothing(properties[name]) for name in missing}}


def nothing(schema):
    if "anyOf" in schema:
        kinds = schema["anyOf"]
        return None if {"type": "null"} in kinds else nothing(kinds[0])
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if isinstance(kind, list):
        return None
    if kind == "object":
        return {name: nothing(schema["properties"][name]) for name in schema.get("required", [])}
    return {"string": "", "integer": 0, "number": 0, "boolean": False, "array": []}.get(kind)


def endpoint(model):
    class Endpoint(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_HEAD(self):
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self):
            client, path = self.split()
            model.others.append((client, path))
            self.whole({"data": [], "models": []})

        def do_POST(self):
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Content-Encoding") in ("gzip", "deflate"):
                raw = zlib.decompress(raw, 47)
            try:
                body = json.loads(raw)
            except ValueError:
                body = {}
            client, path = self.split()
            try:
                answer = model.answer(client, path, body)
                self.stream(answer) if isinstance(answer, list) else self.whole(answer)
            except (BrokenPipeError, ConnectionResetError):
                pass  # The client was killed.

        def split(self):
            path = self.path.split("?")[0].strip("/")
            client, _, rest = path.partition("/")
            return client, "/" + rest

        def whole(self, answer):
            data = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def stream(self, events):
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            for one in events:
                self.wfile.write(one.encode())
                self.wfile.flush()
            self.close_connection = True

    return Endpoint
