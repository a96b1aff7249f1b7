"""The four interfaces that agents speak with a model: how each says a conversation, and wants its answer streamed."""

import json

from .script import Turn


def flat(content):
    """The text of a message's content, however it is nested."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(flat(part) for part in content)
    if isinstance(content, dict):
        for key in ("text", "output", "content", "result", "error"):
            if key in content:
                return flat(content[key])
    return json.dumps(content)


def event(data, kind=None):
    head = f"event: {kind}\n" if kind else ""
    return f"{head}data: {json.dumps(data)}\n\n"


class Anthropic:
    """Messages: Claude Code."""

    @staticmethod
    def understands(path):
        return path.endswith("/messages")

    @staticmethod
    def turn(body):
        used, results, prompts = {}, [], []
        for message in body.get("messages", []):
            content = message.get("content")
            for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                if part["type"] == "tool_use":
                    used[part["id"]] = part["name"]
                elif part["type"] == "tool_result":
                    results.append((used.get(part["tool_use_id"], "?"), flat(part.get("content"))))
                elif part["type"] == "text" and message["role"] == "user":
                    prompts.append(part["text"])
        # The client's own reminders come before what the user asked.
        asked = [prompt for prompt in prompts if not prompt.lstrip().startswith("<system-reminder>")]
        tools = {tool["name"]: tool.get("input_schema") for tool in body.get("tools", [])}
        return Turn(tools, results, asked[0] if asked else "", body)

    @staticmethod
    def answer(body, number, action):
        calls = action if isinstance(action, list) else None
        blocks = [{"type": "text", "text": action}]
        if calls:
            blocks = [
                {"type": "tool_use", "id": f"toolu_{number:05}{index}", "name": call.tool, "input": call.arguments}
                for index, call in enumerate(calls)
            ]
        reason = "tool_use" if calls else "end_turn"
        usage = {"input_tokens": 5, "output_tokens": 5}
        message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": body.get("model"), "usage": usage}
        if not body.get("stream"):
            return {**message, "content": blocks, "stop_reason": reason, "stop_sequence": None}
        empty = {**message, "content": [], "stop_reason": None, "stop_sequence": None}
        events = [{"type": "message_start", "message": empty}]
        for index, block in enumerate(blocks):
            if block["type"] == "text":
                begun, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
                begun = {**block, "input": {}}
            events.append({"type": "content_block_start", "index": index, "content_block": begun})
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
            events.append({"type": "content_block_stop", "index": index})
        stop = {"stop_reason": reason, "stop_sequence": None}
        events.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 5}})
        events.append({"type": "message_stop"})
        return [event(one, one["type"]) for one in events]


class Responses:
    """OpenAI responses: Codex. The tools of an MCP server may come as a namespace."""

    @staticmethod
    def understands(path):
        return path.endswith("/responses")

    @staticmethod
    def turn(body):
        used, results, prompts = {}, [], []
        items = body.get("input", [])
        for item in items if isinstance(items, list) else []:
            kind = item.get("type", "")
            if kind.endswith("_call"):
                used[item.get("call_id")] = item.get("name", "?")
            elif kind.endswith("_output"):
                results.append((used.get(item.get("call_id"), "?"), flat(item.get("output"))))
            elif item.get("role") == "user":
                prompts.append(flat(item.get("content")))
        tools = {name: tool.get("parameters") for _, name, tool in Responses.tools(body)}
        return Turn(tools, results, prompts[-1] if prompts else "", body)

    @staticmethod
    def tools(body):
        for tool in body.get("tools", []):
            if tool.get("type") == "namespace":
                for inner in tool.get("tools", []):
                    yield tool["name"], inner.get("name", "?"), inner
            elif "name" in tool:
                yield None, tool["name"], tool

    @staticmethod
    def answer(body, number, action):
        if isinstance(action, str):
            content = [{"type": "output_text", "text": action, "annotations": []}]
            items = [{"type": "message", "id": f"msg_{number}", "role": "assistant", "content": content}]
        else:
            spaces = {name: space for space, name, _ in Responses.tools(body)}
            items = [
                {
                    "type": "function_call", "id": f"fc_{number}_{index}", "call_id": f"call_{number}_{index}",
                    "name": call.tool, "arguments": json.dumps(call.arguments),
                    **({"namespace": spaces[call.tool]} if spaces.get(call.tool) else {}),
                }
                for index, call in enumerate(action)
            ]
        items = [{**item, "status": "completed"} for item in items]
        usage = {
            "input_tokens": 5, "output_tokens": 5, "total_tokens": 10,
            "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
        }
        response = {
            "id": f"resp_{number}", "object": "response", "created_at": 1, "status": "completed", "model": body.get("model"),
            "output": items, "usage": usage, "parallel_tool_calls": False, "tool_choice": "auto", "tools": [],
        }
        if not body.get("stream"):
            return response
        events = [{"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}]
        for index, item in enumerate(items):
            events.append({"type": "response.output_item.added", "output_index": index, "item": item})
            events.append({"type": "response.output_item.done", "output_index": index, "item": item})
        events.append({"type": "response.completed", "response": response})
        return [event({**one, "sequence_number": index}, one["type"]) for index, one in enumerate(events)]


class Chat:
    """OpenAI chat completions: Copilot CLI, opencode, Qwen Code, Cline, Continue, and most libraries."""

    @staticmethod
    def understands(path):
        return path.endswith("/chat/completions")

    @staticmethod
    def turn(body):
        used, results, prompts = {}, [], []
        for message in body.get("messages", []):
            for call in message.get("tool_calls") or []:
                used[call["id"]] = call["function"]["name"]
            if message.get("role") == "tool":
                results.append((used.get(message.get("tool_call_id"), "?"), flat(message.get("content"))))
            elif message.get("role") == "user":
                text = flat(message.get("content"))
                # smolagents tells results as if the user did.
                if text.startswith("Observation:"):
                    results.append(("?", text))
                else:
                    prompts.append(text)
        functions = [tool["function"] for tool in body.get("tools") or []]
        tools = {function["name"]: function.get("parameters") for function in functions}
        return Turn(tools, results, prompts[-1] if prompts else "", body)

    @staticmethod
    def answer(body, number, action):
        message, reason = {"role": "assistant", "content": action}, "stop"
        if isinstance(action, list):
            reason = "tool_calls"
            calls = [
                {
                    "index": index, "id": f"call_{number}_{index}", "type": "function",
                    "function": {"name": call.tool, "arguments": json.dumps(call.arguments)},
                }
                for index, call in enumerate(action)
            ]
            message = {"role": "assistant", "content": None, "tool_calls": calls}
        base = {"id": f"chat-{number}", "created": 1, "model": body.get("model")}
        usage = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
        if not body.get("stream"):
            choices = [{"index": 0, "message": message, "finish_reason": reason}]
            return {**base, "object": "chat.completion", "choices": choices, "usage": usage}
        base["object"] = "chat.completion.chunk"
        chunks = [
            {**base, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage},
        ]
        return [*(event(chunk) for chunk in chunks), "data: [DONE]\n\n"]


class Gemini:
    """generateContent: Gemini CLI and Google's libraries."""

    @staticmethod
    def understands(path):
        return path.endswith(("generateContent", "GenerateContent"))

    @staticmethod
    def turn(body):
        results, prompts = [], []
        for content in body.get("contents", []):
            for part in content.get("parts", []):
                if "functionResponse" in part:
                    answered = part["functionResponse"]
                    results.append((answered.get("name", "?"), flat(answered.get("response"))))
                elif "text" in part and content.get("role") == "user":
                    prompts.append(part["text"])
        declared = [
            function
            for tool in body.get("tools", [])
            for function in tool.get("functionDeclarations") or tool.get("function_declarations") or []
        ]
        tools = {one["name"]: one.get("parametersJsonSchema") or one.get("parameters") for one in declared}
        return Turn(tools, results, prompts[-1] if prompts else "", body)

    @staticmethod
    def answer(body, number, action):
        parts = [{"text": action}]
        if isinstance(action, list):
            parts = [
                {"functionCall": {"id": f"call_{number}_{index}", "name": call.tool, "args": call.arguments}}
                for index, call in enumerate(action)
            ]
        elif body.get("generationConfig", {}).get("responseMimeType") == "application/json":
            # Which model is to be used, and who speaks next, are asked beside the conversation.
            parts = [{"text": json.dumps({"reasoning": "scripted", "next_speaker": "user", "model_choice": "flash"})}]
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 5, "candidatesTokenCount": 5, "totalTokenCount": 10}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}

    @staticmethod
    def streams(path, body):
        return "streamGenerateContent" in path


DIALECTS = [Anthropic, Responses, Chat, Gemini]
