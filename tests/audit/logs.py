"""Logs of a shop in OpenAI chat form, its pack, and its world."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bylaw.audit.request import Request
from bylaw.audit.run import Report, audit, read_calls
from tests.policy.shop import edited, write_pack

WORLD = {
    "Order": [
        {"order_id": "PAID", "paid": True, "gift": False, "owner": "Ann", "state": "open", "total": "10.00"},
        {"order_id": "OPEN", "paid": False, "gift": True, "owner": "Bob", "state": "open", "total": "20.00"},
    ]
}
OK = '{"ok": true}'
REFUSED = """surely_refused: '^(?:Error: |[{]"error")'\n"""
NO_RESULT: Any = object()


def user(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


def says(text: str) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": text}]


def call(tool: str, arguments: Any, result: Any = OK, *, id: str = "c") -> list[dict[str, Any]]:
    """One call in a turn of its own, and its result where there is one."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    asked = {"id": id, "type": "function", "function": {"name": tool, "arguments": text}}
    messages: list[dict[str, Any]] = [{"role": "assistant", "content": None, "tool_calls": [asked]}]
    if result is not NO_RESULT:
        content = result if isinstance(result, str) else json.dumps(result)
        messages.append({"role": "tool", "tool_call_id": id, "content": content})
    return messages


def look(order: str, **fields: Any) -> list[dict[str, Any]]:
    return call("get_order", {"order_id": order}, {"order_id": order, **fields})


def ship(order: str, result: Any = OK) -> list[dict[str, Any]]:
    return call("ship", {"order_id": order}, result)


def record(*parts: list[dict[str, Any]], **about: Any) -> dict[str, Any]:
    return {**about, "messages": [message for part in parts for message in part]}


CAREFUL = (user("Please ship PAID."), look("PAID", paid=True), ship("PAID"))
HASTY = (user("Please ship PAID."), ship("PAID"))
WRONG = (user("Please ship OPEN."), ship("OPEN"))


def write_logs(path: Path, records: Sequence[Any]) -> Path:
    """One record a line; text is written as it is."""
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8", errors="surrogatepass")
    return path


def write_world(path: Path) -> Path:
    path.write_text(json.dumps(WORLD))
    return path


class Shop:
    """A folder with the pack and the world, where logs are audited."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.pack = write_pack(root / "pack", edited("tools.yaml", "tools:\n", f"{REFUSED}tools:\n"))
        self.world = write_world(root / "world.json")

    def logs(self, *records: Any, name: str = "logs.jsonl") -> Path:
        return write_logs(self.root / name, records)

    def audit(self, *files: Path, world: bool = True, **options: Any) -> Report:
        chosen = self.world if world else None
        return audit(Request(files, str(self.pack), chosen, **options), self.root / "out")

    def calls(self, *records: Any, world: bool = True, **options: Any) -> list[dict[str, Any]]:
        """The lines of calls.jsonl for these conversations."""
        report = self.audit(self.logs(*records), world=world, **options)
        assert report.skipped == (), [str(fault) for fault in report.skipped]
        return list(read_calls(report.out))
