"""Words of the agent's own: whatever they are and whatever is answered, no call runs on them, and nobody is accused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from bylaw import Pack, Shield
from bylaw.trace.event import Event
from tests.consent.desk import agent, desk, done, found, user

PROVED = ("never_put",)
"""What the lack of words can prove: that nothing was put."""


class Wanted(Struct):
    """A call that was wanted, and all that was said before it, each conversation by itself."""

    tool: str
    arguments: dict[str, Any]
    shown: list[Any]
    talks: list[tuple[list[str], bool]]
    """What was said in turns, the agent first; and whether it proves that nobody agreed."""


def conversations() -> Iterator[Wanted]:
    wanted = Wanted("", {}, [], [])
    for line in (Path(__file__).parent / "wordings.txt").read_text(encoding="utf-8").splitlines():
        is_proof = line.startswith("-")
        kind, rest = line[is_proof], line[is_proof + 1 :].strip()
        if kind == "=":
            call, _, shown = rest.partition(" ! ")
            tool, _, arguments = call.partition(" ")
            yield (wanted := Wanted(tool, json.loads(arguments), json.loads(shown or "[]"), []))
            continue
        for talk in rest.split("\u2016") if kind != "#" else ():
            parts: list[str] = [json.loads(f'"{each.strip()}"') for each in talk.replace('"', '\\"').split("\u00a6")]
            turns = {
                "?": [[each, "Yes."] for each in parts],
                "<": [["", each] for each in parts],
                ">": [[parts[0], each] for each in parts[1:]],
                ":": [parts],
            }[kind]
            wanted.talks += [(each, is_proof) for each in turns]


WANTED = list(conversations())


@pytest.fixture(name="pack", scope="module")
def one_pack() -> Pack:
    tools: dict[str, set[str]] = {}
    for each in WANTED:
        tools.setdefault(each.tool, set()).update(each.arguments)
    declared: dict[str, Any] = {
        name: {"effect": "write", "parameters": {key: {"optional": True} for key in keys}, "changes": []}
        for name, keys in tools.items()
    }
    return desk(json.dumps({"tools": declared | {"look": {"effect": "read", "parameters": {}}}}))


def test_there_are_as_many_as_there_were() -> None:
    assert sum(len(each.talks) for each in WANTED) >= 1391


@pytest.mark.parametrize("wanted", WANTED, ids=[f"{each.tool}-{at}" for at, each in enumerate(WANTED)])
def test_no_call_runs_on_words_and_nobody_is_accused_by_them(pack: Pack, wanted: Wanted) -> None:
    shield = Shield(pack)
    for talk, is_proof in wanted.talks:
        said: list[Event] = [(user if at % 2 else agent)(text) for at, text in enumerate(talk) if text]
        looked = [done("look", {}, each) for each in wanted.shown]
        consent = found(pack, [*looked, *said], wanted.tool, wanted.arguments)
        assert consent.value is (False if is_proof else None), (talk, consent.reason)
        assert not is_proof or consent.reason in PROVED
        for basis in ("requested", "card"):
            assert found(pack, [*looked, *said], wanted.tool, wanted.arguments, basis).value is not True
        with shield.session() as session:
            for shown in wanted.shown:
                session.decide("look", {})
                session.result(shown)
            for at, text in enumerate(talk):
                if text:
                    (session.user if at % 2 else session.agent)(text)
            assert not session.decide(wanted.tool, wanted.arguments).allowed, talk
