"""Model outputs: every text is taken apart, none is misread."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw.align.output import read_output, write_call

CALL = '{"name": "get_slot", "arguments": {"slot_id": "S1"}}'
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3),
)


@pytest.mark.parametrize(
    ("raw", "thought", "tool", "text"),
    [
        (f"<think>look</think>\n{CALL}", "look", "get_slot", ""),
        (f"  <think></think>{CALL}  ", "", "get_slot", ""),
        (CALL, None, "get_slot", ""),
        (f"```json\n{CALL}\n```", None, "get_slot", ""),
        ("<think>a\nb</think>Hello.", "a\nb", None, "Hello."),
        ("Hello {friend}.", None, None, "Hello {friend}."),
        ('{"name": "calculate"}', None, "calculate", ""),
    ],
)
def test_outputs_are_taken_apart(raw: str, thought: str | None, tool: str | None, text: str) -> None:
    read = read_output(raw)
    assert (read.thought, read.tool, read.text, read.fault) == (thought, tool, text, "")
    assert read.is_formatted == (thought is not None)


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "<think>only a thought</think>",
        f"<think>one</think><think>two</think>{CALL}",
        f"<think>open {CALL}",
        f"Sure. {CALL}",
        f"{CALL}{CALL}",
        f"[{CALL}]",
        '{"name": 1, "arguments": {}}',
        '{"name": "x", "arguments": []}',
        '{"name": "x", "arguments": {}, "why": "y"}',
        '{"name": "x", "arguments": {"a": 1}',
        "{not json}",
    ],
)
def test_what_is_neither_a_text_nor_one_call_is_a_fault(raw: str) -> None:
    read = read_output(raw)
    assert read.fault
    assert read.tool is None
    assert not read.text
    assert not read.is_formatted


@given(st.text())
def test_any_text_is_read_and_is_a_text_a_call_or_a_fault(raw: str) -> None:
    read = read_output(raw)
    assert (read.tool is not None) + bool(read.text) + bool(read.fault) == 1


@given(st.text(min_size=1), st.dictionaries(st.text(), values, max_size=4))
def test_a_call_that_was_written_is_read_back(tool: str, arguments: dict[str, Any]) -> None:
    if "<think>" in tool + str(arguments) or "</think>" in tool + str(arguments):
        return
    read = read_output(f"<think>so</think>\n{write_call(tool, arguments)}")
    assert (read.tool, read.arguments, read.is_formatted) == (tool, arguments, True)
