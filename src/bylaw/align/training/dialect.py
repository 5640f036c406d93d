"""How a conversation becomes tokens: ChatML, with what tools answer shown as Hermes shows it.

One dialect for training and for evaluation. Which tools there are stands in the system message, and a call is text like
any other. A message's tokens depend on nothing but that message, so a conversation that grows keeps the tokens it had;
`chatml.jinja` says the same to servers that load a checkpoint.
"""
# pyright: basic, reportMissingImports=false

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

Message = Mapping[str, Any]
OPEN, CLOSE = "<|im_start|>", "<|im_end|>"
IGNORED = -100
"""The label of a token that is not learned."""


@cache
def template() -> str:
    return (Path(__file__).parent / "chatml.jinja").read_text(encoding="utf-8").strip()


class Dialect:
    """Reads and writes the tokens of one tokenizer."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        tokenizer.chat_template = template()
        tokenizer.eos_token = CLOSE
        self.end: int = tokenizer.convert_tokens_to_ids(CLOSE)
        self._known: dict[str, list[int]] = {}

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """Everything up to where the agent's next turn begins."""
        ids, _ = self.example(messages)
        return [*ids, *self._tokens(f"{OPEN}assistant\n")]

    def example(self, messages: Sequence[Message]) -> tuple[list[int], list[int]]:
        """A conversation and its labels: the agent's turns and their ends are learned, nothing else is."""
        ids: list[int] = []
        labels: list[int] = []
        for before, learned, after in turns(messages):
            head, body, tail = self._tokens(before), self._tokens(learned), self._tokens(after)
            ids += [*head, *body, *tail]
            labels += [*[IGNORED] * len(head), *body, *[IGNORED] * len(tail)]
        return ids, labels

    def text(self, ids: Sequence[int]) -> str:
        """What the agent wrote, without its end."""
        if ids and ids[-1] == self.end:
            ids = ids[:-1]
        return self.tokenizer.decode(ids, skip_special_tokens=False)

    def _tokens(self, text: str) -> list[int]:
        if (known := self._known.get(text)) is None:
            known = self._known[text] = self.tokenizer(text, add_special_tokens=False)["input_ids"] if text else []
        return known


def turns(messages: Sequence[Message]) -> list[tuple[str, str, str]]:
    """The conversation's text: of every message what comes before the learned part, that part, and what follows."""
    found: list[tuple[str, str, str]] = []
    for message in messages:
        role, content = message["role"], message["content"]
        if role == "assistant":
            found.append((f"{OPEN}assistant\n", content + CLOSE, "\n"))
        elif role == "tool":
            found.append((f"{OPEN}user\n<tool_response>\n{content}\n</tool_response>{CLOSE}\n", "", ""))
        else:
            found.append((f"{OPEN}{role}\n{content}{CLOSE}\n", "", ""))
    return found
