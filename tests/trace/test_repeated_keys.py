"""A conversation whose record gives a key twice is reported, since parsers read it differently."""

from pathlib import Path

import pytest

from bylaw.errors import RecordError
from bylaw.trace import read

PLAIN = (
    '{"id": "a", "messages": [{"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function":'
    ' {"name": "pay", "arguments": {"to": "x:y", "note": "\\u003cb\\u003e"}}}]},'
    ' {"role": "tool", "tool_call_id": "1", "content": {"paid": true}}]}'
)
TWICE = {
    "arguments": ('{"to": "x:y"', '{"to": "z", "to": "x:y"'),
    "escaped": ('{"to": "x:y"', '{"to": "z", "\\u0074o": "x:y"'),
    "result": ('{"paid": true}', '{"paid": false, "paid": true}'),
    "tool": ('"name": "pay"', '"name": "look", "name": "pay"'),
    "content": ('"content": {', '"content": "no", "content": {'),
    "messages": ('"messages": [', '"messages": [], "messages": ['),
    "id": ('"id": "a"', '"id": "b", "id": "a"'),
}


@pytest.mark.parametrize("where", [None, *TWICE])
def test_a_record_with_a_key_given_twice_is_reported(tmp_path: Path, where: str | None) -> None:
    old, new = TWICE[where] if where else ("", "")
    file = tmp_path / "logs.jsonl"
    line = PLAIN.replace(old, new, 1) if where else PLAIN
    other = PLAIN.replace('"a"', '"after"')
    file.write_text(f"{line}\n{other}\n")
    first, after = read(file)
    assert isinstance(first, RecordError) == (where is not None)
    assert not isinstance(after, RecordError)
    if isinstance(first, RecordError):
        assert "appears twice in one object" in first.message
        assert first.place.endswith("logs.jsonl:1")
