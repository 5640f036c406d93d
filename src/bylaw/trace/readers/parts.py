"""Reads the parts of a message: calls, results, text and other content.

In OpenAI's and Anthropic's formats, a part has a `type`. In Bedrock's and Gemini's formats, it has a single key. In
the Vercel AI SDK, the type includes the tool's name, and a part may contain both a call and its result. An unknown
part is an error, because it could be a call.
"""

from collections.abc import Iterable
from typing import Any, cast

from msgspec import Struct

from bylaw.trace.document import Malformed
from bylaw.trace.recorded_value import TEXTS, plain_text, seconds, shown, text_id
from bylaw.trace.transcript import is_users

Fields = dict[str, Any]

BUILT_IN = frozenset(("computer_call", "local_shell_call", "shell_call", "apply_patch_call"))
"""Types of calls to a model's built-in tools that the host executes."""
_CALLS = BUILT_IN.union(
    ("tool_use", "server_tool_use", "mcp_tool_use", "function_call", "tool_call", "tool-call", "mcp_call"),
    ("custom_tool_call", "server_tool_call", "mcp_server_tool_call"),
)
_OUTPUTS = frozenset(
    ("function_call_output", "custom_tool_call_output", "tool_call_output", *(f"{each}_output" for each in BUILT_IN))
)
_ANSWERS = _OUTPUTS.union(
    ("tool_result", "tool-result", "tool_call_response", "server_tool_call_response"),
    ("function_result", "mcp_server_tool_result"),
)
_KEYED_CALLS = ("toolUse", "functionCall", "function_call", "toolCall", "tool_use", "tool_call")
_KEYED_ANSWERS = ("toolResult", "functionResponse", "function_response", "toolResponse", "tool_result")
_CALLS_AND_ANSWERS = _CALLS.union(_ANSWERS, _KEYED_CALLS, _KEYED_ANSWERS)
_ACTIONS = ("action", "operation")
_ARGUMENTS = ("input", "args", "arguments", "rawInput", "tool_kwargs")
_CALL_IDS = ("call_id", "toolCallId", "toolUseId", "tool_call_id", "id")
_ANSWER_IDS = ("tool_use_id", "tool_call_id", "toolCallId", "toolUseId", "call_id", "id")
_CONTENTS = ("content", "output", "result", "response")
_FAILED = frozenset(("output-error", "output-denied"))
_FAILED_TOOL = "An error occurred while running the tool. Please try again."
"""The text that the Agents SDK returns if a tool raised an exception. There is no separate error flag."""

_PICTURES = ("image", "image_url", "input_image", "output_image", "video", "video_url")
_SOUNDS = ("audio", "input_audio", "output_audio")
_FILES = (
    *("file", "input_file", "document", "resource", "resource_link", "blob", "uri", "data", "hosted_file"),
    *("container_upload", "image_generation_call", "image_generation_tool_call"),
)
_SEEN_OR_HEARD = frozenset((*_PICTURES, *_SOUNDS, *_FILES, "inlineData", "inline_data", "fileData", "file_data"))
_SILENT = frozenset(
    (
        *_PICTURES,
        *_SOUNDS,
        *_FILES,
        *("thinking", "redacted_thinking", "reasoning", "redacted-reasoning", "reasoning_text"),
        *("text_reasoning", "summary_text", "step-start", "source", "source-url", "source-document", "citation"),
        *("citations", "usage", "search_result", "compaction", "fallback", "tool_reference"),
        *("system-prompt", "cache", "web_search_call", "file_search_call", "code_interpreter_call"),
        *("mcp_list_tools", "code_interpreter_tool_call", "hosted_vector_store", "item_reference", "citable"),
    )
)
"""Types of parts that contain no calls, results or text, such as pictures, files and thoughts."""
_SILENT_KEYS = frozenset(
    (
        *("image", "document", "video", "audio", "reasoningContent", "cachePoint", "searchResult", "inlineData"),
        *("fileData", "inline_data", "file_data", "executableCode", "executable_code", "codeExecutionResult"),
        *("code_execution_result",),
    )
)
"""Keys of parts that have no type and contain no calls, results or text."""
_BESIDE_WORDS = frozenset(
    (
        *("type", "text", "content", "refusal", "annotations", "citations", "cache_control", "cacheControl"),
        *("id", "index", "logprobs", "state", "providerMetadata", "provider_metadata", "providerOptions"),
        *("metadata", "meta", "_meta", "thoughtSignature", "thought_signature", "thought", "extras", "signature"),
        *("internal", "part_kind", "channels", "additional_properties", "raw_representation"),
        *("experimental_providerMetadata", "providerExecuted", "name"),
    )
)
"""Keys that a text part may have in addition to its text."""


class PartAnswer(Struct):
    content: Any
    id: str = ""
    tool: str = ""
    error: bool | None = None
    refused: bool = False


def is_action(kind: str) -> bool:
    """Whether parts of this type are calls or results."""
    return kind in _CALLS or kind in _ANSWERS


def call_in(part: Any) -> tuple[str, Any, str] | None:
    """Return the tool, arguments and id of a call, or None if the part is not a call."""
    block = _fields(part)
    kind = None if block.get("type") is None else str(block["type"])
    inner, name = block, None
    if kind is None:
        key = next((key for key in _KEYED_CALLS if isinstance(block.get(key), dict)), None)
        if key is None:
            return None
        inner = cast("Fields", block[key])
    elif kind == "tool-invocation":
        inner = _fields(block.get("toolInvocation"))
    elif kind == "dynamic-tool":
        pass
    elif kind.startswith("tool-") and kind not in _CALLS and kind not in _ANSWERS:
        name = kind.removeprefix("tool-")
    elif kind not in _CALLS:
        return None
    name = name or inner.get("name") or inner.get("toolName") or inner.get("tool_name")
    if kind in BUILT_IN:
        name = name or kind.removesuffix("_call")
    if not isinstance(name, str) or not name:
        raise Malformed("a tool call has no name")
    arguments = first(inner, _ARGUMENTS)
    if kind == "custom_tool_call":
        arguments = {"input": arguments}
    elif arguments is None and kind in BUILT_IN:
        arguments = {"action": first(inner, _ACTIONS)}
    elif arguments is None and kind is None and "name" in inner:
        # Gemini omits empty arguments.
        arguments = {}
    return name, arguments, text_id(first(inner, _CALL_IDS))


def answer_in(part: Any) -> PartAnswer | None:
    """Return the result in a part, or None. A part with a result may also be a call."""
    block = _fields(part)
    kind = block.get("type")
    if kind is None:
        key = next((key for key in _KEYED_ANSWERS if isinstance(block.get(key), dict)), None)
        return _keyed_answer(cast("Fields", block[key])) if key is not None else None
    kind = str(kind)
    if kind in _ANSWERS or kind.endswith("_tool_result"):
        error = block.get("is_error", block.get("isError"))
        content = first(block, _CONTENTS)
        told = _output(content) if kind == "tool-result" else (content, None)
        if kind == "tool_call_response":
            told = unwrapped(content)
        if (failed := block.get("exception")) is not None:
            told = content or failed, True
        if kind in _OUTPUTS and isinstance(content, str) and content.startswith(_FAILED_TOOL):
            told = content, True
        error = error if isinstance(error, bool) else told[1]
        tool = block.get("toolName")
        return PartAnswer(told[0], text_id(first(block, _ANSWER_IDS)), tool if isinstance(tool, str) else "", error)
    if kind == "mcp_call":
        if block.get("output") is None and not block.get("error"):
            return None
        failed = True if block.get("error") else None
        return PartAnswer(first(block, ("output", "error")), text_id(first(block, _CALL_IDS)), error=failed)
    if kind in ("tool-invocation", "dynamic-tool") or (kind.startswith("tool-") and kind not in _CALLS):
        inner = _fields(block.get("toolInvocation")) if kind == "tool-invocation" else block
        return invocation_answer(inner)
    return None


def answers_in(parts: list[Any]) -> list[PartAnswer]:
    """Return the results in a tool message, or an empty list if any of its parts is not a result."""
    found = [answer_in(part) for part in parts]
    answers = [each for each in found if each is not None]
    return answers if len(answers) == len(found) else []


def invocation_answer(invocation: Fields) -> PartAnswer | None:
    """Return the result in a Vercel AI SDK call, or None if the call has no result yet."""
    state = str(invocation.get("state"))
    content = first(invocation, ("output", "result"))
    if state in _FAILED or (content is None and invocation.get("errorText")):
        content = content if content is not None else invocation.get("errorText") or "Error"
        return PartAnswer(content, text_id(first(invocation, _CALL_IDS)), error=True, refused=state == "output-denied")
    if content is None and state not in ("result", "output-available"):
        return None
    return PartAnswer(content, text_id(first(invocation, _CALL_IDS)))


def _keyed_answer(inner: Fields) -> PartAnswer:
    content: Any = first(inner, _CONTENTS)
    error = True if inner.get("status") == "error" else None
    if content.__class__ is list and len(content) == 1:
        only = _fields(content[0])
        content = only["json"] if only.keys() == {"json"} else content
    if "response" in inner:
        content, failed = unwrapped(content)
        error = error or failed
    name = inner.get("name")
    id = text_id(first(inner, _ANSWER_IDS))
    return PartAnswer(content, id, name if isinstance(name, str) else "", error)


def unwrapped(content: Any) -> tuple[Any, bool | None]:
    """Return the result of a Gemini function without its wrapper, and whether the function failed."""
    match content:
        case {"result": result} if len(cast("Fields", content)) == 1:
            return result, None
        case {"error": error} if len(cast("Fields", content)) == 1:
            return error, True
        case _:
            return content, None


def _output(content: Any) -> tuple[Any, bool | None]:
    """Return a Vercel AI SDK result without its wrapper, and whether the wrapper reports an error."""
    inner = _fields(content)
    match inner.get("type"):
        case "text" | "json" | "content" if "value" in inner:
            return inner["value"], None
        case "error-text" | "error-json" if "value" in inner:
            return inner["value"], True
        case "execution-denied":
            return inner.get("reason") or "denied", True
        case _:
            return content, None


def words_in(part: Any) -> str | None:
    """Return the text in a part, an empty string if the part has no text, or None if the part cannot be read."""
    if isinstance(part, str):
        return part
    block = _given(part)
    kind = block.get("type")
    if not block or (isinstance(kind, str) and (kind in _SILENT or kind.startswith("data-"))):
        return None if not block and part else ""
    if kind is None:
        if not _SILENT_KEYS.isdisjoint(block):
            return ""
        if isinstance(cited := block.get("citationsContent"), dict):
            return plain_text(cast("Fields", cited).get("content"))
        if not isinstance(text := block.get("text"), str):
            return None
        words = "" if block.get("thought") else text
    else:
        words = shown(block)
    beside = block.keys() - _BESIDE_WORDS
    return None if beside and any(may_tell(block[name]) for name in beside) else words


def heard(content: Any) -> tuple[str, bool]:
    """Return the user's text, and whether this text is the whole message.

    Only plain text counts as the user's. Files, pages, e-mails and text with another person's `name` do not count.
    """
    parts = cast("list[Any]", content) if isinstance(content, list) else [content]
    said = [words_in(part) if _is_text(part) and _is_users(part) else None for part in parts]
    return "\n".join(filter(None, said)), None not in said


def _is_text(part: Any) -> bool:
    block = _given(part)
    if "type" in block:
        return str(block["type"]) in TEXTS
    return isinstance(part, str) or ("text" in block and _SILENT_KEYS.isdisjoint(block))


def _is_users(part: Any) -> bool:
    block = _given(part)
    return is_users(block.get("name"), block.get("tool_call_id"))


def is_all_words(content: Any) -> bool:
    """Whether an agent's message shows the user only text.

    Calls and thoughts do not matter, because users do not see them.
    """
    parts = cast("list[Any]", content) if isinstance(content, list) else [content]
    return not any(map(_shows_more, parts))


def _shows_more(part: Any) -> bool:
    block = _given(part)
    names = (str(block["type"]),) if "type" in block else block
    if not _SEEN_OR_HEARD.isdisjoint(names):
        return True
    is_call = any(name in _CALLS_AND_ANSWERS or name.endswith("_tool_result") for name in names)
    return bool(part) and not is_call and words_in(part) is None


def is_own_data(part: Any) -> bool:
    """Whether a part contains the application's data, which the speaker did not write."""
    return str(_fields(part).get("type")).startswith("data-")


def check_parts(content: Any, place: str) -> None:
    """Raise Malformed if a part of an agent's message has an unknown structure."""
    for at, part in enumerate(cast("list[Any]", content) if isinstance(content, list) else [content]):
        if words_in(part) is None and call_in(part) is None and answer_in(part) is None:
            raise Malformed(f"{place} has a part that cannot be read: {named(part)} (part {at})")


def named(part: Any) -> str:
    """Describe a part for an error message."""
    block = _fields(part)
    if kind := block.get("type"):
        return f"type `{kind}`"
    keys = ", ".join(f"`{key}`" for key in list(block)[:4])
    return f"with {keys}" if keys else f"a `{type(part).__name__}`"


def may_tell(value: Any) -> bool:
    """Whether an unknown field may contain a call, a result or a sentence.

    Numbers, single words and dates do not count.
    """
    if isinstance(value, str):
        text = value.strip()
        return (text[:1] in ("[", "{") and len(text) > 2) or (len(text.split(None, 1)) > 1 and seconds(text) is None)
    if isinstance(value, dict):
        return any(not (each is None or isinstance(each, int | float)) for each in cast("Fields", value).values())
    return isinstance(value, list) and any(may_tell(each) for each in cast("list[Any]", value))


def may_call(value: Any) -> bool:
    """Whether an unknown field may contain a call or a result.

    Its value must be an object with a name and another object or list, possibly as JSON text. For example, `{"label":
    "refund", "score": 0.8}` is neither a call nor a result.
    """
    if isinstance(value, str):
        text = value.strip()
        return text[:1] in ("[", "{") and len(text) > 2
    if isinstance(value, list):
        return any(map(may_call, cast("list[Any]", value)))
    if not isinstance(value, dict):
        return False
    held = cast("Fields", value).values()
    is_named = any(isinstance(each, str) for each in held)
    return any(may_call(each) or (is_named and isinstance(each, dict | list)) for each in held)


def has_words(value: Any) -> bool:
    """Whether a value contains text of several words. Dates do not count."""
    if isinstance(value, str):
        return len(value.split(None, 1)) > 1 and seconds(value.strip()) is None
    inner = cast(
        "Iterable[Any]", value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    )
    return any(map(has_words, inner))


def first(fields: Fields, names: tuple[str, ...]) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _fields(value: Any) -> Fields:
    return cast("Fields", value) if isinstance(value, dict) else {}


def _given(part: Any) -> Fields:
    """Remove null fields, because Google's SDK writes every key."""
    return {name: value for name, value in _fields(part).items() if value is not None}
