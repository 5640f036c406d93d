"""Bugs in the framework adapters and the MCP proxy."""

from planted.bug import Bug

BUGS = (
    Bug("masked fields of the items of a list are shown", "integrations/mcp_showing.py",
        "return [self._without_fields(each) for each in cast(list[Any], data)]", "return data",
        "integrations/test_showing.py"),
    Bug("a masked result in words is shown if nobody can read it", "integrations/mcp_showing.py",
        "return WITHHELD if data is None else", "return value if data is None else",
        "integrations/test_showing.py"),
    Bug("a result in words that contradicts the data counts as seen", "integrations/mcp_result.py",
        "return words != data and str(words) != str(data)", "return False",
        "integrations/test_mcp.py integrations/test_showing.py"),
    Bug("a changed description of a tool is the accepted one", "integrations/mcp_catalogue.py",
        '_SAID = ("name", "title", "description",', '_SAID = ("name", "title",',
        "integrations/test_mcp_catalogue.py"),
    Bug("a message with calls or results is talk", "integrations/mcp_handshake.py",
        'any(value not in (None, "", [], {}) for name, value in message.items() if name not in _TALK)', "False",
        "integrations/test_mcp_speaking.py integrations/test_mcp_rounds.py"),
    Bug("a named message that a client tells is the user's", "integrations/mcp_handshake.py",
        'is_theirs = not message.get("name")', "is_theirs = True",
        "integrations/test_mcp_speaking.py integrations/test_mcp_rounds.py"),
    Bug("an answer to another prompt counts", "integrations/guard.py",
        'answer.get("id") == prompt.id and ', "",
        "integrations/test_pausing.py"),
    Bug("a reviewer's answer needs no name", "integrations/guard.py",
        'or bool(str(answer.get("by") or "").strip())', "or True",
        "integrations/test_pausing.py"),
    Bug("a card that the user declined is put again", "integrations/guard.py",
        "return not event.confirmation.yes", "return False",
        "integrations/test_pausing.py"),
)  # fmt: skip
