"""The path language of observations, one row of its table at a time."""

from typing import Any

import pytest

from bylaw.facts.observation import NOTHING, ItemPath, PathError, PathScope, compile_path

ITEM = {
    "a": 1,
    "b": {"c": [10, 20, {"d": 30}]},
    "with space": 2,
    "it-em": 3,
    "null": None,
    "none": [],
    "rows": [{"n": 1}, {"n": 2}, 5],
}
RESULT = {"whole": True}
ARGS = {"date": "2024-05-15", "list": ["x", "y"]}
SCOPE = PathScope(ITEM, RESULT, ARGS, "K1")


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("$", ITEM),
        ("$result", RESULT),
        ("$result.whole", True),
        ("$args.date", "2024-05-15"),
        ("$args['date']", "2024-05-15"),
        ("$key", "K1"),
        ("$.a", 1),
        ("$.b.c[0]", 10),
        ("$.b.c[2].d", 30),
        ("$['with space']", 2),
        ('$["with space"]', 2),
        ("$.it-em", 3),
        ("$.null", None),
        ("$.rows[*].n", [1, 2]),
        ("$.b.*", [[10, 20, {"d": 30}]]),
        ("$.b.c[*]", [10, 20, {"d": 30}]),
        ("$.rows[*]", [{"n": 1}, {"n": 2}, 5]),
        ("$.nothing[*]", NOTHING),
        ("$.a[*]", NOTHING),
        ("$.none[*]", []),
        ("$.nothing", NOTHING),
        ("$.a.b", NOTHING),
        ("$.b.c[9]", NOTHING),
        ("$.b[0]", NOTHING),
        ("$.b.c.d", NOTHING),
        ("$args.nothing", NOTHING),
        ("$key.x", NOTHING),
        ("=word", "word"),
        ("=", ""),
        ("=$.a", "$.a"),
        ("=two words", "two words"),
    ],
)
def test_a_path_leads_where_the_table_says(path: str, wanted: Any) -> None:
    found = compile_path(path)(SCOPE)
    assert found is NOTHING if wanted is NOTHING else found == wanted


@pytest.mark.parametrize("item", [None, 5, "text", [], [1, 2], True])
def test_a_path_into_something_else_leads_nowhere(item: Any) -> None:
    assert compile_path("$.a.b[0]")(PathScope(item, item, {})) is NOTHING
    assert compile_path("$.a")(PathScope(item, item, {})) is NOTHING
    assert list(ItemPath("$.a[*]")(PathScope(item, item, {}))) == []


def test_iterating_an_object_binds_its_names() -> None:
    scope = PathScope({"R1": {"x": 1}, "R2": {"x": 2}}, None, {})
    assert list(ItemPath("$.*")(scope)) == [({"x": 1}, "R1"), ({"x": 2}, "R2")]


def test_iterating_one_thing_gives_that_thing() -> None:
    assert list(ItemPath("$.b")(SCOPE)) == [(ITEM["b"], "K1")]
    assert list(ItemPath("$.nothing")(SCOPE)) == []


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a",
        "$$",
        "$.",
        "$.a.",
        "$[",
        "$[x]",
        "$[-1]",
        "$a",
        "$argsx",
        "$.a b",
        "$.a..b",
        "$['a]",
        "$(@.x)",
        "$.a[1:2]",
    ],
)
def test_what_is_no_path_is_said_to_be_none(path: str) -> None:
    with pytest.raises(PathError, match="path `"):
        compile_path(path)
