"""The compiler's notes on a pack, for `review` and `check`. The file is untrusted and validated by its types."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bylaw.pack import Pack
from bylaw.pack.review import COMPILED
from bylaw.policy.folder import own_record
from bylaw.policy.reading import Scalar
from bylaw.policy.yaml import YamlError


class NotedQuestion(Struct, frozen=True):
    """A question for a person."""

    about: Scalar = ""
    text: Scalar = ""
    input: Any = None


class NotedCall(Struct, frozen=True):
    """A recorded call to which the check applies."""

    conversation: Scalar = ""
    step: Scalar = ""
    why: Scalar = ""


class NotedCalls(Struct, frozen=True):
    """The recorded calls with one verdict: their number, and the first few."""

    calls: int = 0
    first: list[NotedCall] = []


class Noted(Struct, frozen=True):
    """The compiler's notes on one policy."""

    repairs: Scalar = ""
    generated_inputs: Scalar = ""
    generations_divided_on: Scalar = ""
    failed: Scalar = ""
    questions: list[NotedQuestion] = []
    in_logs: dict[str, NotedCalls] = {}
    is_compiled: bool = False


class _LeftOut(Struct, frozen=True):
    sentence: Scalar = ""
    said: Scalar = ""


class _File(Struct, frozen=True):
    policies: dict[str, Noted | None] | None = None
    sentences_without_policy: list[_LeftOut] | None = None


def noted_of(root: Path) -> dict[str, Noted]:
    """The compiler's notes by policy; empty for a pack written by hand."""
    found = _read(root).policies or {}
    return {name: msgspec.structs.replace(each or Noted(), is_compiled=True) for name, each in found.items()}


def most_pressing_first(pack: Pack, names: Iterable[str], noted: Mapping[str, Noted]) -> list[str]:
    """Policies in the order to review them: with questions, of high severity, or flagging logged calls first."""

    def urgency(name: str) -> int:
        found = noted.get(name, Noted())
        return sum(map(bool, (found.questions, pack.policies[name].severity == "high", found.in_logs)))

    return sorted(names, key=urgency, reverse=True)


def why_unenforced(root: Path, name: str) -> str:
    """Why the compiler left a policy without a check."""
    return str(noted_of(root).get(name, Noted()).failed or "nothing enforces it")


def left_out_of(root: Path) -> dict[str, str]:
    """Why the compiler made no policy from a sentence, by the sentence's text."""
    return {str(each.sentence): str(each.said) for each in _read(root).sentences_without_policy or ()}


def _read(root: Path) -> _File:
    if not (root / COMPILED).is_file():
        return _File()
    try:
        return msgspec.convert(own_record(root, COMPILED), _File)
    except msgspec.ValidationError as error:
        hint = "`bylaw compile` writes this file"
        raise YamlError(f"not what a compile notes: {error}", place=COMPILED, hint=hint) from None
