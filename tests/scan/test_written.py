"""YAML for people to correct: written by the quick way as by the plain one, signs of every kind as they are."""

from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from bylaw.policy.yaml import read_yaml
from bylaw.scan.written import dump, packed

SIGNS = "ab c'\":-#\n,[]{}é😀|>%@`!&*?01.\\"
TEXT = st.text(alphabet=SIGNS, max_size=150) | st.sampled_from(["yes", "null", "2024-01-01", "1e3", "~", "="])
DATA: Any = st.recursive(
    TEXT | st.integers() | st.booleans() | st.none(),
    lambda part: st.lists(part, max_size=4) | st.dictionaries(TEXT.filter(bool), part, max_size=4),
    max_leaves=12,
)


class Unabridged(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


@given(st.dictionaries(TEXT.filter(bool), DATA, max_size=4))
def test_the_quick_way_writes_what_the_plain_one_writes(data: dict[str, Any]) -> None:
    assert dump(data) == yaml.dump(data, Dumper=Unabridged, sort_keys=False, allow_unicode=True, width=110)


def test_signs_outside_ascii_stay_readable_and_repeated_values_are_written_out() -> None:
    shared = ["Žluťoučký 😀"]
    text = dump({"one": shared, "two": shared})
    assert text == "one:\n- Žluťoučký 😀\ntwo:\n- Žluťoučký 😀\n"
    assert read_yaml(text, file="x.yaml").data == {"one": shared, "two": shared}


@given(DATA)
def test_a_packed_file_reads_as_it_was(data: Any) -> None:
    assert yaml.safe_load(packed(data)) == data
