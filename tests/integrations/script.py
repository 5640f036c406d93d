"""A scripted model on loopback, with the HTTP APIs of OpenAI and Anthropic."""

import json
import threading
import uuid
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Script:
    """The model's answers in each conversation, and how many of them it has given."""

    def __init__(self, path: Path) -> None:
        self.by_id = {each["id"]: each for each in json.loads(path.read_text())["conversations"]}
        self.requests: list[dict[str, Any]] = []
        self._said: defaultdict[str, int] = defaultdict(int)
        self._lock = threading.Lock()

    def next_step(self, model: str) -> dict[str, Any]:
        """Return the model's next answer in the conversation with this id."""
        id = model.rpartition("/")[2]
        steps = [step for turn in self.by_id[id]["turns"] for step in turn["steps"]]
        with self._lock:
            at = self._said[id]
            self._said[id] += 1
        return steps[at]


class _Model(BaseHTTPRequestHandler):
    script: Script

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        if "/messages" in self.path and not request.get("tools"):
            # This is a request of Claude's agent outside the conversation.
            self._events(_message(request, {"text": "ok", "calls": []}))
            return
        self.script.requests.append(request)
        step = self.script.next_step(request["model"])
        if "/messages" in self.path:
            self._events(_message(request, step))
        elif self.path.endswith("/responses"):
            self._answer(_response(request, step))
        elif request.get("stream"):
            self._stream(_completion(request, step))
        else:
            self._answer(_completion(request, step))

    def _answer(self, value: dict[str, Any]) -> None:
        self._send(json.dumps(value).encode(), "application/json")

    def _stream(self, completion: dict[str, Any]) -> None:
        (choice,) = completion["choices"]
        delta = {**choice["message"]}
        if "tool_calls" in delta:
            delta["tool_calls"] = [{**call, "index": at} for at, call in enumerate(delta["tool_calls"])]
        whole = {**completion, "object": "chat.completion.chunk"}
        chunks = [
            {**whole, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {**whole, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]},
        ]
        lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"]
        self._send("".join(lines).encode(), "text/event-stream")

    def _events(self, message: dict[str, Any]) -> None:
        """Stream a message of Anthropic's API in blocks."""
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
        ]
        for at, block in enumerate(message["content"]):
            if block["type"] == "text":
                begun, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                begun = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            events.append({"type": "content_block_start", "index": at, "content_block": begun})
            events.append({"type": "content_block_delta", "index": at, "delta": delta})
            events.append({"type": "content_block_stop", "index": at})
        ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        events.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 1}})
        events.append({"type": "message_stop"})
        lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
        self._send("".join(lines).encode(), "text/event-stream")

    def _send(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _completion(request: dict[str, Any], step: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": step["text"]}
    if step["calls"]:
        message["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
            }
            for call in step["calls"]
        ]
    reason = "tool_calls" if step["calls"] else "stop"
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def _message(request: dict[str, Any], step: dict[str, Any]) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": step["text"]}] if step["text"] else []
    blocks += [
        {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["arguments"]}
        for call in step["calls"]
    ]
    return {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": blocks,
        "stop_reason": "tool_use" if step["calls"] else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _response(request: dict[str, Any], step: dict[str, Any]) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if step["text"]:
        content = [{"type": "output_text", "text": step["text"], "annotations": []}]
        output.append(
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
        )
    output += [
        {
            "type": "function_call",
            "id": f"fc_{call['id']}",
            "call_id": call["id"],
            "name": call["name"],
            "arguments": json.dumps(call["arguments"]),
            "status": "completed",
        }
        for call in step["calls"]
    ]
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": request["model"],
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 1,
            "output_tokens": 1,
            "total_tokens": 2,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def serve(script: Script) -> str:
    """Start the model on loopback and return its base URL."""
    handler = type("Model", (_Model,), {"script": script})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"
