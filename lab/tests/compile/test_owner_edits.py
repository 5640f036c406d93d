"""Forty edits by an owner, drawn with a seed from the compiled clinic, survive three updates of its handbook."""

import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from bylaw.compile.items import Items, read_items
from bylaw.compile.pipeline import Source, Work, compile_pack
from bylaw.compile.update import MadeOf, faults_of, owner_of, read_before, write_pack
from bylaw.llm import Request
from bylaw.policy.document import Document
from lab.tests.compile.test_clinic_compiled import made
from tests.compile.shop import Scripted

__all__ = ["made"]

pytestmark = pytest.mark.slow
OLD = "Invoices issued in the last 60 days, the sixtieth day included, may be refunded."
NEW = "Invoices issued in the last 45 days, the forty-fifth day included, may be refunded."
ADDED = "Never promise a parking space."
AGE = "refund-invoice-age"
"""The policy whose sentence changes. Nobody edits its guard, or that of `refund-limit-by-tier` next to it."""
DELETIONS = ("membership", "referrals", "slots", "privacy", "prescriptions")


def test_forty_edits_survive_an_unchanged_document_a_changed_sentence_and_an_added_section(
    made: tuple[Source, Work, object], tmp_path: Path
) -> None:
    source, work, _ = made
    root = tmp_path / "clinic"
    source = replace(source, trajectories=(), refinements=0)
    write_pack(root, source, work, MadeOf(("policy.md",), name="clinic"))
    base = now(root)
    edits = list(drawn(root, random.Random(48)))
    assert len(edits) == 40
    ours = now(root)
    touched = {key for key in {**base, **ours} if base.get(key) != ours.get(key)}
    assert len(touched) >= len(edits)
    text = source.document.text
    changed = text.replace(OLD, NEW)
    for document in (text, changed, f"{changed}\n## Parking\n\n{ADDED}\n"):
        before = read_before(root)
        given = replace(source, document=Document(document), earlier=before.work, owner=owner_of(before))
        chat = answers(work)
        written, _ = compile_pack(given, chat)
        assert document != text or not chat.rounds, "an unchanged document asks nothing"
        write_pack(root, given, written, before.made_of, before=before)
        found = now(root)
        lost = [key for key in touched if found.get(key) != ours.get(key)]
        assert not lost, lost
        assert faults_of(root) == []
    assert "days(45)" in found["guards", AGE.replace("-", "_")], "what nobody edited follows the document"
    assert ("policies.yaml", "policies", "no-parking") in found


def now(root: Path) -> Items:
    """Return all items of a pack."""
    names = [path.relative_to(root).as_posix() for path in sorted(root.rglob("*")) if path.suffix in (".py", ".yaml")]
    texts = {name: (root / name).read_text() for name in names if name not in ("compiled.yaml", "made-of.yaml")}
    return {key: value for name, text in texts.items() for key, value in read_items(name, text).items()}


def drawn(root: Path, draw: random.Random) -> Iterator[str]:
    """Edit the pack's files like an owner. Return the edits."""
    guards = sorted((root / "guards").glob("*.py"))
    messages = [(path, text) for path in guards for text in re.findall(r'deny\(("[^"]+")\)', path.read_text())]
    for path, text in draw.sample([each for each in messages if "60 days" not in each[1]], 9):
        yield edited(path, lambda old, text=text: old.replace(text, f'{text[:-1]}, says Ines"', 1))
    yield edited(root / "guards/bills_and_refunds.py", lambda old: old.replace('money("50.00"):', 'money("60.00"):', 1))
    policies = root / "policies.yaml"
    talk = re.findall(r"- id: (\S+)\n  kind: conversation", policies.read_text())
    for name in draw.sample(talk, 3):
        head = f"- id: {name}\n  kind: "
        body = (
            f'def {name.replace("-", "_")}(call, facts):\n    if call.invoice_id == "X":\n        return deny("no")\n'
        )
        yield edited(
            policies, lambda old, head=head: old.replace(f"{head}conversation", f"{head}guard\n  tools: [issue_refund]")
        )
        path = root / "guards" / f"of_{name.replace('-', '_')}.py"
        path.write_text(f"{body}    return permit()\n")
    fields = re.findall(r"^ +(\w+): string$", (root / "entities.yaml").read_text(), re.MULTILINE)
    for name in draw.sample([each for each in fields if not each.endswith("_id")], 2):
        yield edited(
            root / "entities.yaml", lambda old, name=name: old.replace(f"{name}: string\n", f"{name}: string?\n", 1)
        )
    words = re.findall(r"(?:status|kind|tier): \[\w+, ", (root / "entities.yaml").read_text())
    for word in draw.sample(sorted(set(words)), 4):
        yield edited(root / "entities.yaml", lambda old, word=word: old.replace(word, f"{word}ours, ", 1))
    for kind in ("Patient", "Slot", "Invoice"):
        yield edited(
            root / "entities.yaml",
            lambda old, kind=kind: old.replace(f"  {kind}:\n", f"  {kind}:\n    fresh_for: 86400\n", 1),
        )
    effects = re.findall(r"^    effects: .*\n", (root / "tools.yaml").read_text(), re.MULTILINE)
    for line in draw.sample(effects, 4):
        yield edited(root / "tools.yaml", lambda old, line=line: old.replace(line, "", 1))
    yield edited(
        root / "tools.yaml",
        lambda old: old.replace("    changes: [Invoice.refunded]", "    changes: [Invoice.refunded, Invoice.status]"),
    )
    yield from cases(root, draw)
    yield from deleted(root, draw)


def cases(root: Path, draw: random.Random) -> Iterator[str]:
    """Edit cases: change notes, remove cases, and add cases."""
    files = [path for path in sorted((root / "cases").glob("*.yaml")) if path.stem not in DELETIONS]
    for number, path in enumerate(draw.choices(files, k=4)):
        yield edited(
            path,
            lambda old, number=number: (
                re.sub(r"- note: '?(\w)", rf"- note: {number} \1", old, count=1)
                if "- note: '" not in old[:9]
                else old.replace("- note: '", f"- note: '{number} ", 1)
            ),
        )
    for path in draw.sample(files, 2):
        yield edited(path, lambda old: old[: old.rindex("\n- note") + 1])
    for number in range(2):
        path = root / "cases" / "bills_and_refunds.yaml"
        call = f'{{issue_refund: {{patient_id: P1, invoice_id: I1, amount: "{number + 1}.00"}}}}'
        facts = "{'Invoice[I1]': {issued_on: '2025-03-12'}}"
        case = f"- {{note: ours {number}, policy: {AGE}, call: {call}, facts: {facts}}}\n"
        yield edited(path, lambda old, case=case: old + case)


def deleted(root: Path, draw: random.Random) -> Iterator[str]:
    """Remove policies with their guards and cases."""
    for part in DELETIONS:
        path = root / "guards" / f"{part}.py"
        name = draw.choice(re.findall(r"^def (\w+)", path.read_text(), re.MULTILINE))
        yield edited(path, lambda old, name=name: re.sub(rf"^def {name}\(.*?(?=^def |\Z)", "", old, flags=re.M | re.S))
        policy = name.replace("_", "-")
        edited(root / "policies.yaml", lambda old, policy=policy: without(old, f"id: {policy}\n"))
        edited(root / "cases" / f"{part}.yaml", lambda old, policy=policy: without(old, f"policy: {policy}\n"))


def without(text: str, mark: str) -> str:
    """Return a YAML list without the members that contain a line."""
    return "".join(each for each in re.split(r"^(?=- )", text, flags=re.MULTILINE) if mark not in each)


def edited(path: Path, change: Callable[[str], str]) -> str:
    before = path.read_text()
    path.write_text(change(before))
    assert path.read_text() != before, path
    return path.name


def answers(work: Work) -> "Clinic":
    return Clinic(work)


class Clinic(Scripted):
    """Return answers about the changed sentence and the added section. No other question may be asked."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._check = work.checks[AGE]
        draft = next(each for each in work.drafts if each.id == AGE)
        self._quotes = [NEW if quote == OLD else quote for quote in draft.quotes]

    def _one(self, request: Request) -> str:
        asked = request.messages[1].content
        match request.name:
            case "cover" if NEW in asked:
                return json.dumps({"policies": [_policy("age", self._quotes)], "others": []})
            case "cover":
                return json.dumps({"policies": [_policy("no-parking", [ADDED])], "others": []})
            case "sort":
                name, kind = ("no-parking", "conversation") if "no-parking" in asked else (AGE, "guard")
                tools = ["issue_refund"] if kind == "guard" else []
                body = {"id": name, "kind": kind, "tools": tools, "severity": "low", "general": False}
                return json.dumps({"policies": [{**body, "user_facts": [], "why": "so"}]})
            case "guards":
                return self._check.code.replace("60", "45")
            case "cases":
                days = {"2025-01-12": "2025-01-27", "2025-01-11": "2025-01-26", "2025-01-10": "2025-01-25"}
                text = json.dumps(list(self._check.cases))
                for old, new in days.items():
                    text = text.replace(old, new)
                return text
            case _:
                raise AssertionError(request.name)


def _policy(name: str, quotes: list[str]) -> dict[str, object]:
    return {"id": name, "definition": f"It says: {quotes[0]}", "scope": "", "description": "", "quotes": quotes}
