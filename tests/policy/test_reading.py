"""Files of a pack as records: what fits is read, and everything else is told with its place, whatever it is."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw.facts.written import EntitiesFile
from bylaw.pack.rules import RulesFile, WeightsFile
from bylaw.policy.case import CasesFile
from bylaw.policy.folder import Manifest
from bylaw.policy.statement import PoliciesFile
from bylaw.policy.tool import ToolsFile
from bylaw.policy.yaml import MOST, Located, read_record, read_yaml

KINDS = (Manifest, ToolsFile, EntitiesFile, PoliciesFile, RulesFile, WeightsFile, CasesFile)
NAMES = sorted(
    {name for kind in KINDS for name in kind.__struct_fields__}
    | {
        "id",
        "key",
        "fields",
        "spans",
        "at",
        "from",
        "says",
        "changes",
        "effects",
        "as",
        "said",
        "odd",
        "x - at `$.tools`",
    }
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(0, 9)
    | st.floats(0, 1)
    | st.sampled_from(["", "a", "$", "` - at `$.a[...]`"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=20,
)


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4))
def test_whatever_a_file_holds_what_is_left_fits_and_the_rest_is_told(kind: type[Any], data: dict[str, Any]) -> None:
    read = read_record(Located("f.yaml", data, {}), kind)
    assert msgspec.convert(read.source.data, kind) == read.record
    assert all(fault.code == "BY408" and fault.place == "f.yaml" for fault in read.faults)
    try:
        assert msgspec.convert(data, kind) == read.record
    except msgspec.ValidationError:
        assert read.source.data != data
    else:
        assert not read.faults


def told(text: str, kind: type[Any]) -> list[str]:
    return [str(fault) for fault in read_record(read_yaml(text, file="f.yaml"), kind).faults]


def test_items_after_one_at_fault_keep_their_lines() -> None:
    text = "policies:\n  - 5\n  - {id: a, line: 1}\n  - [x]\n  - {id: b, spans: [{digest: 7}]}\n"
    assert told(text, PoliciesFile) == [
        "f.yaml:2: item 1 of `policies` must be a mapping, not `5`",
        "f.yaml:3: `line` is not a known key; known: definition, description, id, kind, scope, severity, spans, tools,"
        " unenforced",
        "f.yaml:4: item 3 of `policies` must be a mapping, not a list",
        "f.yaml:5: `digest` must be text, not `7`; put the value in quotes",
    ]


def test_the_key_of_a_mapping_is_found_though_msgspec_leaves_it_out() -> None:
    tools = "".join(f"  t{number}:\n    effect: {'[]' if number in (3, 17) else 'read'}\n" for number in range(20))
    assert told(f"tools:\n{tools}", ToolsFile) == [
        "f.yaml:9: `effect` must be one value, not a list",
        "f.yaml:37: `effect` must be one value, not a list",
    ]


def test_what_is_left_empty_is_as_if_it_were_not_there() -> None:
    read = read_record(read_yaml("tools:\n  a: {effect: read, description: }\n  b:\n", file="f.yaml"), ToolsFile)
    assert not read.faults
    assert read.record.tools["b"] is None
    assert told("policies:\n  - \n", PoliciesFile) == ["f.yaml:2: item 1 of `policies` must be a mapping, not empty"]


@pytest.mark.parametrize("name", ["x - at `$.tools`", "$.tools[...]", "x` - at `$.tools[...].effect", "`"])
def test_a_key_that_looks_like_a_place_is_only_a_key(name: str) -> None:
    read = read_record(Located("f.yaml", {"tools": {"a": {}}, name: 1}, {}), ToolsFile)
    assert [fault.message for fault in read.faults] == [f"`{name}` is not a known key"]


def test_a_file_full_of_faults_ends() -> None:
    read = read_record(Located("f.yaml", {"policies": [1] * 5000}, {}), PoliciesFile)
    assert len(read.faults) == MOST + 1
    assert read.record == PoliciesFile()


def test_a_number_outside_its_range_is_told_with_its_line() -> None:
    found = told("shield:\n  approval:\n    timeout: -1\n", Manifest)
    assert found == ["f.yaml:3: `timeout` cannot be `-1`; expected `float` > 0.0"]
