"""A name given twice is found wherever it stands, and nothing else is taken for one."""

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as some

from bylaw.trace.event import decode_text
from bylaw.trace.recorded_value import Contradicted, decode_json, holds_contradiction, merged

texts = some.text(alphabet='ab:"\\,{}é ', max_size=5)
values = some.recursive(
    some.none() | some.booleans() | some.integers(-5, 5) | texts,
    lambda inner: (
        some.lists(inner, max_size=3) | some.lists(some.tuples(some.sampled_from("ab:"), inner), max_size=3).map(tuple)
    ),
    max_leaves=12,
)
"""A tuple is a record, name by name, of which a name may come twice."""


def written(value: Any, escape: bool, gap: str) -> str:
    if isinstance(value, tuple):
        return "{" + ",".join(f"{json.dumps(name)}{gap}:{written(each, escape, gap)}" for name, each in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(written(each, escape, gap) for each in value) + "]"
    said = json.dumps(value)
    return said.replace(":", "\\u003a") if escape and isinstance(value, str) else said


def plain(value: Any) -> Any:
    """The obvious way: by name, the values that differ."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if not isinstance(value, tuple):
        return value
    told: dict[str, list[Any]] = {}
    for name, each in value:
        said = told.setdefault(name, [])
        if not any(json.dumps(one, default=str) == json.dumps(plain(each), default=str) for one in said):
            said.append(plain(each))
    return {name: said[0] if len(said) == 1 else Contradicted(tuple(said)) for name, said in told.items()}


@given(values, some.booleans(), some.sampled_from(("", " ")))
def test_both_values_of_a_name_are_kept(value: Any, escape: bool, gap: str) -> None:
    text = written(value, escape, gap)
    found = decode_json(text)
    assert repr(found) == repr(plain(value))
    assert repr(decode_json(msgspec.Raw(text.encode()))) == repr(found)
    assert holds_contradiction(found) is ("Contradicted" in repr(found))


def test_a_result_of_mcp_is_held_against_its_text() -> None:
    def told(texts: list[str], data: Any) -> Any:
        parts = [{"type": "text", "text": text} for text in texts]
        return decode_text(json.dumps({"content": parts, "structuredContent": data, "isError": False}))

    assert told(['{"a": 1}'], {"a": 1, "b": 2}) == {"a": 1, "b": 2}
    assert told(['{"a": 2}'], {"a": 1, "b": 2}) == {"a": Contradicted((1, 2)), "b": 2}
    assert told(["5"], {"result": 5}) == told(["5"], {"result": 5}) == {"result": 5}
    assert told(["5"], {"result": "5"}) == {"result": "5"}
    assert told(["C2"], {"result": "C1"}) == {"result": Contradicted(("C1", "C2"))}
    assert told(["found it"], {"result": 5}) == {"result": 5}
    assert told(["[1, 2]"], {"result": [1, 2]}) == told(["1", "2"], {"result": [1, 2]}) == {"result": [1, 2]}
    assert told(["1", "3"], {"result": [1, 2]}) == {"result": [1, Contradicted((2, 3))]}
    assert holds_contradiction(told(["1"], {"result": [1, 2]}))
    assert told([], {"result": None}) == {"result": None}


def test_what_one_account_lacks_contradicts_nothing() -> None:
    assert merged({"a": 1}, {"b": 2}) == {"a": 1}
    assert merged([{"a": 1}], [{"a": 2}]) == [{"a": Contradicted((1, 2))}]
