"""What a tool of a server returned: for the log and the guards as it was, for the agent as the pack says."""
# pyright: basic, reportMissingImports=false

from typing import Any

from fastmcp.exceptions import McpError, NotFoundError
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND, TextContent

from bylaw.integrations.follower import log
from bylaw.integrations.showing import WITHHELD, Showing, read_data, shows_all
from bylaw.policy.tool import Tool
from bylaw.shield import Decision


def never_ran(error: BaseException) -> bool:
    """Whether a call failed before its tool ran: by the protocol's own word, not by what a tool writes."""
    if isinstance(error, McpError):
        return error.error.code in (INVALID_PARAMS, METHOD_NOT_FOUND)
    return isinstance(error, NotFoundError)


def returned(answer: Any, tool: str) -> dict[str, Any]:
    """What to record of an answer: its content, and whether it failed.

    The same may stand there twice, as data and in words, and an agent may read either. Where the two contradict each
    other nobody knows what it has seen, so nothing counts as shown.
    """
    structured, error = answer.structured_content, answer.is_error
    texts = [part.text for part in answer.content if isinstance(part, TextContent)]
    if structured is None:
        return {"content": "\n".join(texts), "error": error}
    # A tool that returns no object has what it returns under this name.
    wrapped = structured.get("result") if structured.keys() == {"result"} else structured
    if any(_contradicts(read_data(text), wrapped) for text in texts):
        log.warning("%s: its result in words contradicts the structured one; neither counts as seen", tool)
        return {"content": "", "captured": False}
    return {"content": wrapped, "error": error}


def _contradicts(words: Any, data: Any) -> bool:
    """Whether two readings of one result differ in something that both tell."""
    if isinstance(words, dict) and isinstance(data, dict):
        return any(_contradicts(words[name], data[name]) for name in words.keys() & data.keys())
    if isinstance(words, list) and isinstance(data, list):
        return len(words) == len(data) and any(map(_contradicts, words, data))
    if isinstance(words, dict | list | None) or isinstance(data, dict | list | None):
        return False
    return words != data and str(words) != str(data)


def for_agent(answer: Any, tool: Tool | None) -> Any:
    """The answer without what the pack masks, and with what others wrote marked as theirs."""
    if tool is None or shows_all(tool):
        return answer
    showing, structured = Showing(tool), answer.structured_content
    content: list[Any] = []
    for part in answer.content:
        if isinstance(part, TextContent):
            text = showing.text(part.text, is_error=bool(answer.is_error), instead=structured)
            content.append(part.model_copy(update={"text": text}))
        else:
            # What a picture or a file holds nobody can tell here.
            content.append(TextContent(type="text", text=WITHHELD) if tool.mask else part)
    shown = None if structured is None else showing.value(structured)
    return answer.model_copy(update={"content": content, "structured_content": shown})


def with_note(answer: Any, decision: Decision) -> Any:
    """The answer, with what the agent is advised of beside it."""
    if not decision.feedback:
        return answer
    note = TextContent(type="text", text=decision.feedback)
    return answer.model_copy(update={"content": [*answer.content, note]})
