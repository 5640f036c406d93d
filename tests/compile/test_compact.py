"""Cases written shortly say what they said at length."""

from collections import Counter
from typing import Any, cast

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import convert
from msgspec.json import encode

from bylaw.compile.assemble import compacted, count
from bylaw.policy.case import CasesFile
from bylaw.scan.written import packed

_values = st.sampled_from(["P1", "10.00", 3, True])
_record = st.dictionaries(st.sampled_from(["a", "b", "c"]), _values, max_size=3)
_things = st.dictionaries(st.sampled_from(["Order[O1]", "Order[O2]"]), st.none() | _record, max_size=2)
_events = st.lists(
    st.sampled_from([{"user": "yes"}, {"agent": "Shall I?"}, {"user": "no"}, {"call": "pay", "args": {"a": 1}}]),
    min_size=1,
    max_size=3,
)
_guard_cases = st.fixed_dictionaries(
    {
        "note": st.text("xy", max_size=3),
        "policy": st.sampled_from(["own", "paid"]),
        "call": st.dictionaries(st.sampled_from(["pay", "cancel"]), _record, min_size=1, max_size=1),
        "facts": _things,
        "want": st.sampled_from(["permit", "deny", "undetermined", {"strict": "violation"}]),
    },
    optional={
        "now": st.just("2025-03-12T09:00:00"),
        "context": st.just({"desk": "front"}),
        "world": _things,
        "done": st.lists(_things, max_size=1),
        "events": _events,
    },
)
_rule_cases = st.fixed_dictionaries(
    {
        "note": st.text("xy", max_size=3),
        "rule": st.just("asked-first"),
        "events": _events,
        "want": st.sampled_from(["kept", "broken"]),
    }
)


def _told(cases: list[dict[str, Any]]) -> Counter[bytes]:
    """What cases say, one by one, whatever their order and whether they spell out what goes without saying."""
    parts = ("note", "policy", "rule", "now", "called", "facts", "world", "events", "context", "done", "wanted", "want")
    read = convert({"cases": cases}, CasesFile, strict=False).written_out
    told = [[getattr(each, part) for part in parts] for each in read]
    each = ([*rest, cast(Any, want)] if isinstance(want, dict) else rest for *rest, want in told)
    return Counter(encode(parts, order="sorted") for parts in each)


@given(st.lists(_guard_cases | _rule_cases, max_size=8))
@settings(max_examples=60, deadline=None)
def test_nothing_is_lost(cases: list[dict[str, Any]]) -> None:
    short = compacted(cases)
    assert _told(short) == _told(cases)
    assert count(short) == len(cases)


@given(st.lists(_guard_cases, max_size=4))
@settings(max_examples=40, deadline=None)
def test_a_packed_file_holds_what_a_plain_one_does(cases: list[dict[str, Any]]) -> None:
    assert yaml.safe_load(packed(compacted(cases))) == compacted(cases)


def test_what_differs_in_a_word_stands_under_but() -> None:
    call = {"refund": {"order_id": "O1", "amount": "10.00"}}
    paid = {"note": "a paid order", "policy": "paid", "call": call, "facts": {"Order[O1]": {"status": "paid"}}}
    unpaid = {**paid, "note": "an open one", "facts": {"Order[O1]": {"status": "open"}}, "want": "deny"}
    assert packed(compacted([{**paid, "want": "permit"}, unpaid])) == (
        "- note: a paid order\n"
        "  policy: paid\n"
        "  call: {refund: {order_id: O1, amount: '10.00'}}\n"
        "  facts: {'Order[O1]': {status: paid}}\n"
        "  but: {note: an open one, facts: {'Order[O1]': {status: open}}}\n"
    )
