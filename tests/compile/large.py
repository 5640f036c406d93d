"""A large house, made up: an API with ten operations for each kind of record, a handbook, a model that reads."""

import json
import re
from datetime import date, timedelta
from typing import Any

from bylaw.compile.pipeline import Source
from bylaw.compile.tools import read_tools
from bylaw.llm import Request
from bylaw.policy.document import Document
from tests.compile.shop import Scripted

# fmt: off
NOUNS = (
    "account", "address", "agreement", "appeal", "asset", "booking", "branch", "budget",
    "campaign", "card", "case", "certificate", "contact", "contract", "course", "courier",
    "delivery", "device", "discount", "dispute", "donation", "employee", "equipment", "expense",
    "invoice", "lease", "ledger", "licence", "listing", "location", "machine", "meeting",
    "member", "order", "parcel", "payment", "permit", "policy", "project", "property",
    "quote", "receipt", "refund", "report", "request", "review", "route", "sample",
    "schedule", "shipment",
)
# fmt: on
FIELDS = ("owner", "title", "summary", "region", "channel", "currency", "language", "priority", "source", "category")


def api(count: int) -> dict[str, Any]:
    """An OpenAPI description with `count` operations."""
    paths: dict[str, Any] = {}
    for noun in NOUNS[: -(-count // 10)]:
        text = {"type": "string"}
        record = {f"{noun}_id": text, "made_on": {"type": "string", "format": "date"}, "status": text}
        record |= {f"{noun}_{name}": {"type": "string", "description": f"{name} of the {noun}"} for name in FIELDS}
        shown = {"type": "object", "properties": record}
        one = [{"name": f"{noun}_id", "in": "path", "required": True, "schema": text}]
        body = {"content": {"application/json": {"schema": {"type": "object", "properties": record}}}}
        every = {"type": "object", "properties": {f"{noun}s": {"type": "array", "items": shown}}}

        def operation(name: str, does: str, answer: Any, **more: Any) -> dict[str, Any]:
            schema = {"200": {"content": {"application/json": {"schema": answer}}}}
            return {"operationId": name, "summary": does, "responses": schema, **more}

        plural = f"/{noun}s"
        paths[plural] = {
            "get": operation(f"list_{noun}s", f"List every {noun} of an owner.", every),
            "post": operation(f"create_{noun}", f"Make a new {noun}.", shown, requestBody=body),
        }
        paths[f"{plural}/{{id}}"] = {
            "get": operation(f"get_{noun}", f"Read one {noun}.", shown, parameters=one),
            "patch": operation(f"update_{noun}", f"Change a {noun}.", shown, parameters=one, requestBody=body),
            "delete": operation(f"delete_{noun}", f"Delete a {noun} for good.", {"type": "object"}, parameters=one),
        }
        for verb in ("archive", "restore", "assign", "export", "share"):
            does = operation(f"{verb}_{noun}", f"{verb.title()} a {noun}.", {"type": "object"}, parameters=one)
            paths[f"{plural}/{{id}}/{verb}"] = {"post": does}
    return {"openapi": "3.0.0", "paths": paths}


def house(folder: Any, *, tools: int, policies: int) -> Source:
    """A house with that many tools and policies: each about another kind of record, as far as there are kinds."""
    (folder / "api.json").write_text(json.dumps(api(tools)))
    cards = read_tools([str(folder / "api.json")])
    kinds = NOUNS[: tools // 10]
    lines = [
        f"A {kinds[number % len(kinds)]} is deleted only up to {number + 10} days after it was made."
        for number in range(policies)
    ]
    return Source(Document("# Handbook\n\n" + "\n\n".join(lines) + "\n"), "Handbook", cards)


class Reader(Scripted):
    """Answers from what a request shows, as a careful model would."""

    def __init__(self) -> None:
        super().__init__(
            extract=_extracted, things=_things, things_more=_things, sort=_sorted, cases=_cases, guards=_guards
        )


def _shown(request: Request) -> str:
    return request.messages[1].content


def _extracted(request: Request) -> str:
    found = re.findall(r"A (\w+) is deleted only up to (\d+) days after it was made\.", _shown(request))
    return json.dumps(
        {
            "policies": [
                {
                    "id": f"{noun}-within-{days}",
                    "definition": f"A {noun} may be deleted up to {days} days after it was made.",
                    "scope": f"deleting a {noun}",
                    "description": "",
                    "quotes": [f"A {noun} is deleted only up to {days} days after it was made."],
                }
                for noun, days in found
            ]
        }
    )


def _asked(request: Request) -> list[tuple[str, str]]:
    return re.findall(r"^(\w+)-within-(\d+)$", _shown(request), re.MULTILINE)


def _things(request: Request) -> str:
    tools = re.findall(r"^(\w+)\(", _shown(request), re.MULTILINE)
    nouns = [name.removeprefix("get_") for name in tools if name.startswith("get_")]
    lines = ["entities:" if nouns else "entities: {}"]
    lines += [
        f"  {noun.title()}: {{key: {noun}_id, read: get_{noun}, fields: {{made_on: date, status: string}}}}"
        for noun in nouns
    ]
    lines.append("observations:" if nouns else "observations: {}")
    lines += [f"  get_{noun}: {{as: {noun.title()}}}" for noun in nouns]
    lines.append("tools:")
    for name in tools:
        reads = name.startswith(("get_", "list_"))
        lines.append(f"  {name}: {{effect: {'read' if reads else 'write, changes: []'}}}")
    return "\n".join(lines)


def _sorted(request: Request) -> str:
    shown = _shown(request)
    assert all(f"- delete_{noun}(" in shown for noun, _ in _asked(request)), (
        "the tool that it binds is among those told"
    )
    bare: dict[str, Any] = {"kind": "guard", "severity": "medium", "general": False, "user_facts": [], "why": ""}
    return json.dumps(
        {
            "policies": [
                {"id": f"{noun}-within-{days}", "tools": [f"delete_{noun}"], **bare} for noun, days in _asked(request)
            ]
        }
    )


def _cases(request: Request) -> str:
    lines: list[str] = []
    for noun, days in _asked(request):
        last = (date(2025, 1, 15) - timedelta(days=int(days))).isoformat()
        for made, want in ((last, "permit"), ("2024-01-14", "deny")):
            lines.append(
                f"- {{note: made on {made}, policy: {noun}-within-{days}, call: {{delete_{noun}: {{{noun}_id: A1}}}}, "
                f'facts: {{"{noun.title()}[A1]": {{made_on: {made}}}}}, want: {want}}}'
            )
    return "\n".join(lines)


def _guards(request: Request) -> str:
    return "\n".join(
        f"def {noun}_within_{days}(call, facts):\n"
        f"    if date(now()) - facts.{noun.title()}(call.{noun}_id).made_on > days({days}):\n"
        f'        return deny("made more than {days} days ago")\n    return permit()\n'
        for noun, days in _asked(request)
    )
