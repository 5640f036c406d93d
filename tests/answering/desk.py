"""A small pack with questions that only a reader can answer, and a chat that answers by the request's own words."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import msgspec

from bylaw.llm import Answer, Request
from bylaw.pack import Pack
from tests.packs import made

FILES = {
    "pack.yaml": "{format: 1, name: desk, document: policy.md}",
    "policy.md": "Tell the customer what you cancel and wait for a yes. Never cancel for a stranger.",
    "tools.yaml": """
tools:
  cancel_order: {effect: write, parameters: {order_id: string}}
  close_account: {effect: write, parameters: {account_id: string}}
  get_order: {effect: read, parameters: {order_id: string}}
""",
    "policies.yaml": """
policies:
  - {id: confirm, kind: rule, spans: [Tell the customer what you cancel and wait for a yes.]}
  - {id: stranger, kind: rule, spans: [Never cancel for a stranger.]}
""",
    "rules.yaml": """
predicates:
  change: {effect: write}
  told: {question: "Was the customer told of this very change?"}
  agreed: {question: "Did the customer then say yes to it?"}
  known: {question: "Does the customer own the order?"}
rules:
  - {id: confirm, formula: "ALWAYS (change IMPLIES (told AND agreed))", hard: true}
  - {id: stranger, formula: "ALWAYS (change IMPLIES known)", weight: 1.0}
""",
}

PLAN = {
    "steps": [
        {"operation": "search", "name": "words", "words": "cancel {order_id}", "by": "anyone", "last": 4},
        {"operation": "binary_check", "name": "told", "question": "Told of {order_id}?", "uses": ["words"]},
        {"operation": "binary_check", "name": "yes", "question": "A yes?", "uses": ["words"]},
        {"operation": "formal_verify", "name": "agreed", "formula": "EVENTUALLY (told AND NEXT EVENTUALLY yes)"},
    ]
}
OWNER = {
    "steps": [
        {"operation": "search", "name": "words", "words": "own order", "by": "anyone", "last": 3},
        {"operation": "binary_check", "name": "known", "question": "Whose is it?", "uses": ["words"]},
    ]
}


@cache
def desk() -> Pack:
    return made(FILES)


class Scripted:
    """Answers each request with what a function of its question gives: data, or an `Answer`."""

    def __init__(self, answer: Callable[[str, str], Any]) -> None:
        self._answer = answer
        self.asked: list[tuple[str, str]] = []

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        found: list[Answer] = []
        for request in requests:
            text = request.messages[1].content
            self.asked.append((request.name, text))
            said = self._answer(request.name, text)
            found.append(said if isinstance(said, Answer) else Answer(msgspec.json.encode(said).decode()))
        return found

    @property
    def kinds(self) -> list[str]:
        """The prompts that were asked, in order."""
        return [name for name, _ in self.asked]


def reader(name: str, text: str) -> Any:
    """A model that plans as above and reads what it is shown."""
    if name == "plan":
        return OWNER if "Predicate known" in text else PLAN
    question = text.rsplit("Question: ", 1)[-1]
    lines = dict(line.split("] ", 1) for line in text.splitlines() if line.startswith("["))
    steps = {int(number[1:]): said for number, said in lines.items()}
    wanted = {"Told of": "I would cancel", "A yes": "user: Yes", "Whose": "my own order"}
    part = next(words for start, words in wanted.items() if question.startswith(start))
    hits = [(step, said) for step, said in steps.items() if part in said]
    if not hits:
        return {"answer": "no", "quotes": [], "because": "nobody says so"}
    step, said = hits[-1]
    return {"answer": "yes", "quotes": [{"step": step, "text": said.split(": ", 1)[1]}], "because": "it is said"}
