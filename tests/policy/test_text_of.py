"""The text of a statement is what Python's own, slower way says it is."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw.text.python import parse_python, text_of


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@given(st.lists(st.sampled_from(["x = 'ä€'", "if x:", "    y = '''a", "\fb''' ; z = 1", "é = 'ö'; b = 2", "# ü", ""])))
def test_the_text_of_a_statement(end: str, lines: list[str]) -> None:
    source = end.join(lines)
    try:
        nodes = [node for node in ast.walk(parse_python(source)) if isinstance(node, ast.stmt)]
    except SyntaxError:
        return
    assert [text_of(source, node) for node in nodes] == [ast.get_source_segment(source, node) for node in nodes]
