"""A model's search of the history: if its quote occurs in the named result, the fact counts as seen."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime

import pytest
from msgspec.structs import replace

from bylaw.compile.assemble import assemble
from bylaw.compile.pipeline import compile_pack
from bylaw.engine.finished import verdicts
from bylaw.facts.entity import UNSEEN, Entity, Field
from bylaw.llm import Answer, Request
from bylaw.pack import Pack
from bylaw.trace import Call, Result, Trajectory
from bylaw_lab.search import (
    Finding,
    ModelSearch,
    Piece,
    _checked,  # pyright: ignore[reportPrivateUsage]
    _Need,  # pyright: ignore[reportPrivateUsage]
)
from tests.compile.shop import Scripted, source

ORDER = '{"order_id": "A1", "customer_id": "C1", "delivered_on": "2025-01-10", "refunded": "0.00"}'
REFUND = Call("refund", {"order_id": "A1", "customer_id": "C1", "amount": "20.00"}, turn=2)
SHOWN = Trajectory("one", (Call("get_order", {"order_id": "A1"}, turn=1), Result(0, ORDER), REFUND))


@pytest.fixture(scope="module")
def blind() -> Pack:
    """Return the shop's pack without observations, with only the refund window."""
    files = assemble(source(), compile_pack(source(), Scripted())[0], name="shop")
    pack = Pack.from_files({name: text for name, text in files.items() if name != "compiled.yaml"})
    kept = {
        tool: tuple(each for each in bound if each[0].id == "refund-window") for tool, bound in pack.by_tool.items()
    }

    return replace(
        pack, by_tool=kept, now=datetime.fromisoformat("2025-01-20T09:00:00"), schema=replace(pack.schema, shows={})
    )


class Reader:
    """Answers a search according to the facts requested."""

    def __init__(self, find: Callable[[str], dict[str, object]]) -> None:
        self._find = find
        self.requests: list[Request] = []

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        self.requests += requests
        return [Answer(self._one(request)) for request in requests]

    def _one(self, request: Request) -> str:
        listed = request.messages[1].content.split("The facts that are needed:")[1].strip().splitlines()
        facts = [{"number": number, **self._find(line)} for number, line in enumerate(listed, 1)]
        return json.dumps({"facts": facts})


def found(line: str) -> dict[str, object]:
    if "delivered_on" in line:
        return settled('"delivered_on":"2025-01-10"', "2025-01-10")
    return {"settled": False, "pieces": [], "value": ""}


def settled(quote: str, value: str, *, step: int = 1) -> dict[str, object]:
    return {"settled": True, "pieces": [{"step": step, "quote": quote}], "value": value}


def verdict(pack: Pack, reader: Reader) -> str:
    search = ModelSearch(reader)
    return search.repeat(lambda: verdicts(search.over(pack), SHOWN).calls[0].policies[0].determined)


def test_without_a_search_nothing_was_seen(blind: Pack) -> None:
    assert verdicts(blind, SHOWN).calls[0].policies[0].determined == "uninformed"


def test_a_fact_that_a_result_settles_counts_as_seen(blind: Pack) -> None:
    reader = Reader(found)
    assert verdict(blind, reader) == "compliant"
    assert len(reader.requests) == 1
    assert '[1] get_order({"order_id":"A1"})' in reader.requests[0].messages[1].content


@pytest.mark.parametrize(
    "lie",
    [
        settled('"delivered_on":"2025-01-15"', "2025-01-15"),
        settled('"delivered_on":"2025-01-10"', "2025-01-10", step=7),
        settled("", "2025-01-10"),
        settled('"delivered_on":"2025-01-10"', "2025-01-11"),
        settled('"delivered_on":"2025-01-10"', "soon"),
        settled("get_order", "2025-01-10"),
        {"settled": True, "pieces": [], "value": "2025-01-10"},
    ],
    ids=[
        "words that stand nowhere",
        "another step",
        "no quote",
        "another value",
        "no date",
        "words of the call",
        "no piece",
    ],
)
def test_an_answer_without_ground_is_not_believed(blind: Pack, lie: dict[str, object]) -> None:
    reader = Reader(lambda line: {**found(line), **(lie if "delivered_on" in line else {})})
    assert verdict(blind, reader) == "uninformed"


def test_a_list_may_be_put_together_from_pieces_and_each_part_must_stand_in_one() -> None:
    shown = ('[1] get_trip({}) -> {"legs":["X1"]}', '[3] get_leg({}) -> {"leg":"X2","day":"2025-01-10"}')
    entity = Entity("Trip", ("trip_id",), {"legs": Field("legs", "list")})
    need = _Need(entity, ("T1",), entity.fields["legs"])
    pieces = (Piece(1, '"legs":["X1"]'), Piece(3, '"leg":"X2"'))
    assert _checked(Finding(1, True, pieces, '["X1", "X2"]'), need, shown) == ["X1", "X2"]
    assert _checked(Finding(1, True, pieces, '["X1", "X9"]'), need, shown) is UNSEEN
    assert _checked(Finding(1, True, pieces[:1], '["X1", "X2"]'), need, shown) is UNSEEN
    elsewhere = (pieces[0], Piece(1, '"leg":"X2"'))
    assert _checked(Finding(1, True, elsewhere, '["X1", "X2"]'), need, shown) is UNSEEN


def test_what_observations_show_is_asked_of_nobody(blind: Pack) -> None:
    files = assemble(source(), compile_pack(source(), Scripted())[0], name="shop")
    whole = Pack.from_files({name: text for name, text in files.items() if name != "compiled.yaml"})
    pack = replace(blind, schema=replace(blind.schema, shows=whole.schema.shows))
    reader = Reader(found)
    assert verdict(pack, reader) == "compliant"
    assert not reader.requests
