"""Agents that people work with: how each is configured, pointed at the scripted model, and started."""

import json
from pathlib import Path

LOOPBACK = Path(__file__).resolve().parent / "loopback.cjs"


class ClaudeCode:
    name, title, package = "claude", "Claude Code", "@anthropic-ai/claude-code"

    @staticmethod
    def configure(place, model):
        return {"ANTHROPIC_BASE_URL": model, "ANTHROPIC_API_KEY": "x"}

    @staticmethod
    def command(prompt):
        allowed = ["mcp__callboard__*", "Bash", "Edit", "Write", "Read", "Agent"]
        return ["claude", "-p", prompt, "--mcp-config", ".mcp.json", "--allowedTools", *allowed]


class Codex:
    name, title, package = "codex", "Codex", "@openai/codex"

    @staticmethod
    def configure(place, model):
        settings = f"""
model = "scripted"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "{model}"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
[projects."{place.repository}"]
trust_level = "trusted"
"""
        write(place.home / ".codex/config.toml", settings)
        return {"SCRIPTED_KEY": "x"}

    @staticmethod
    def command(prompt):
        return ["codex", "exec", "--dangerously-bypass-approvals-and-sandbox", prompt]


class GeminiCli:
    name, title, package = "gemini", "Gemini CLI", "@google/gemini-cli"

    @staticmethod
    def configure(place, model):
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "telemetry": {"enabled": False},
            "privacy": {"usageStatisticsEnabled": False},
        }
        write(place.home / ".gemini/settings.json", json.dumps(settings))
        write(place.home / ".gemini/trustedFolders.json", json.dumps({str(place.repository): "TRUST_FOLDER"}))
        return {"GOOGLE_GEMINI_BASE_URL": model, "GEMINI_API_KEY": "x"}

    @staticmethod
    def command(prompt):
        return ["gemini", "--yolo", "-p", prompt]


class CopilotCli:
    name, title, package = "copilot", "Copilot CLI", "@github/copilot"

    @staticmethod
    def configure(place, model):
        return {"COPILOT_PROVIDER_BASE_URL": model, "COPILOT_PROVIDER_API_KEY": "x", "COPILOT_MODEL": "scripted"}

    @staticmethod
    def command(prompt):
        return ["copilot", "--allow-all-tools", "--trust-folder", "--disable-builtin-mcps", "--no-auto-update", "-p", prompt]


class OpenCode:
    name, title, package = "opencode", "opencode", "opencode-ai"

    @staticmethod
    def configure(place, model):
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {"baseURL": model, "apiKey": "x"},
            "models": {"scripted": {"name": "scripted", "tool_call": True}},
        }
        settings = {
            "autoupdate": False, "share": "disabled", "permission": "allow",
            "model": "scripted/scripted", "small_model": "scripted/scripted", "provider": {"scripted": provider},
        }
        write(place.home / ".config/opencode/opencode.json", json.dumps(settings))
        return {}

    @staticmethod
    def command(prompt):
        return ["opencode", "run", prompt]


class QwenCode:
    name, title, package = "qwen", "Qwen Code", "@qwen-code/qwen-code"

    @staticmethod
    def configure(place, model):
        server = {"command": place.server[0], "args": place.server[1:]}
        if place.url:
            server = {"httpUrl": place.url, "headers": place.authorization}
        settings = {
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
            "security": {"auth": {"selectedType": "openai"}},
            "model": {"name": "scripted"},
            "mcpServers": {"callboard": server},
        }
        write(place.home / ".qwen/settings.json", json.dumps(settings))
        return {"OPENAI_BASE_URL": model, "OPENAI_API_KEY": "x"}

    @staticmethod
    def command(prompt):
        return ["qwen", "--yolo", prompt]


class Cline:
    name, title, package = "cline", "Cline", "cline"

    @staticmethod
    def configure(place, model):
        server = {"type": "stdio", "command": place.server[0], "args": place.server[1:]}
        if place.url:
            server = {"type": "streamableHttp", "url": place.url, "headers": place.authorization}
        settings = place.home / ".cline/data/settings"
        write(settings / "cline_mcp_settings.json", json.dumps({"mcpServers": {"callboard": server}}))
        # Each command would try for 8 s to send what it measured.
        write(settings / "global-settings.json", json.dumps({"telemetryOptOut": True, "autoUpdateEnabled": False}))
        place.run(["cline", "auth", "--provider", "openai", "--apikey", "x", "--modelid", "scripted", "--baseurl", model])
        # Else a process of Cline that all its sessions share would outlive the check.
        return {"CLINE_SESSION_BACKEND_MODE": "local"}

    @staticmethod
    def command(prompt):
        return ["cline", prompt]


class Continue:
    name, title, package = "continue", "Continue", "@continuedev/cli"

    @staticmethod
    def configure(place, model):
        server = {"type": "stdio", "command": place.server[0], "args": place.server[1:]}
        if place.url:
            server = {"type": "streamable-http", "url": place.url, "requestOptions": {"headers": place.authorization}}
        scripted = {"name": "scripted", "provider": "openai", "model": "scripted", "apiBase": model, "apiKey": "x"}
        settings = {
            "name": "scripted", "version": "1.0.0", "schema": "v1",
            "models": [{**scripted, "roles": ["chat"], "capabilities": ["tool_use"]}],
            "mcpServers": [{"name": "callboard", **server}],
        }
        # YAML can be written as JSON.
        write(place.home / ".continue/config.yaml", json.dumps(settings))
        # It would send the machine's id to its vendor, and update itself.
        return {"NODE_OPTIONS": f"--require {LOOPBACK}"}

    @staticmethod
    def command(prompt):
        return ["cn", "--auto", "-p", prompt]


def prepare(program, place, model, hooks=False):
    """Writes the client's configuration, and returns its environment beside the place's."""
    env = program.configure(place, model)
    if program not in BY_HAND:
        place.connect(program.name, *([] if hooks else ["--no-hooks"]))
    return env


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


# These have hooks that `callboard connect` writes without asking, and that need nobody's trust.
HOOKED = [ClaudeCode]
# `callboard connect` does not know these: their own configuration names the server.
BY_HAND = [QwenCode, Cline, Continue]
PROGRAMS = [ClaudeCode, Codex, GeminiCli, CopilotCli, OpenCode, *BY_HAND]
