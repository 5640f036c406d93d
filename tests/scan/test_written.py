"""YAML that is laid out for people is the same whether C writes it or Python."""

from typing import Any
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from bylaw.policy.yaml import read_yaml
from bylaw.scan import written

_WORDS = ("order_id", "was paid, then", "yes: no", "'q'", "#x", "- y", "true", "12", "2020-01-01", "", "x" * 130, "é\\")
_TEXTS = st.one_of(st.sampled_from(_WORDS), st.text(alphabet="ab :,-#'\"\n[]{}", max_size=12), st.just("long " * 30))
_DATA: Any = st.recursive(
    st.one_of(_TEXTS, st.integers(-9, 99_999), st.booleans(), st.none()),
    lambda parts: st.one_of(st.lists(parts, max_size=5), st.dictionaries(_TEXTS.filter(bool), parts, max_size=5)),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from("abc"), _DATA, min_size=1))
def test_the_quick_writer_writes_what_the_plain_one_writes(data: dict[str, Any]) -> None:
    quick = [written.packed(data), written.dump(data)]
    with mock.patch.object(written, "_Quick", getattr(written, "_Plain")):  # noqa: B009
        assert [written.packed(data), written.dump(data)] == quick


def test_what_is_laid_out_is_read_as_it_was() -> None:
    data = {"tools": {"refund": {"description": "Pay back: é, \\n and #1", "parameters": {"a": [1, 2], "b": {}}}}}
    for text in (written.packed(data), written.dump(data)):
        assert read_yaml(text, file="x.yaml").data == data
