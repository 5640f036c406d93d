"""The shield as a LiteLLM guardrail, for the library and the gateway. Extra `litellm`.

LiteLLM calls the model, and LiteLLM's caller runs the tools. So calls are decided when the model's answer arrives, and
a stopped call never reaches the caller. Instead, the model gets the reason as the tool's result and is asked again. The
caller's history lacks this exchange, so the guardrail inserts it into later requests.
"""
# pyright: basic, reportMissingImports=false

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import litellm
import msgspec
from litellm.integrations.custom_guardrail import CustomGuardrail
from litellm.types.guardrails import GuardrailEventHooks
from litellm.types.utils import CallTypes

from bylaw.errors import UsageError
from bylaw.integrations.guard import Adapter, Context
from bylaw.integrations.history import Answered, Asked, Heard, Part, Turn
from bylaw.pack import Pack
from bylaw.shield import Decision, Shield
from bylaw.trace.event import with_note
from bylaw.trace.readers.parts import heard, is_all_words
from bylaw.trace.recorded_value import plain_text

ROUNDS = 8
"""The maximum number of consecutive answers without an allowed tool call. The model is then not asked again."""
KEPT = 10_000
"""The number of exchanges to keep for insertion into callers' histories."""
ONE_ANSWER = "the shield can check only one answer per request"
CHATS = {CallTypes.completion, CallTypes.acompletion}
_CALLERS = (
    "user_api_key_hash",
    "user_api_key_user_id",
    "user_api_key_team_id",
    "user_api_key_end_user_id",
    "bylaw_agent",
)
"""Metadata from the gateway or the caller that identifies the sender of a request."""
_OURS = ("litellm_logging_obj", "litellm_call_id", "litellm_trace_id")
"""Request fields that LiteLLM sets and that differ between requests."""
_round: ContextVar[int] = ContextVar("bylaw_litellm_round", default=0)


class ShieldGuardrail(Adapter, CustomGuardrail):
    """Shields calls: `litellm.callbacks = [ShieldGuardrail("pack")]`, or as a guardrail in the gateway's configuration.

    Requests name their conversation with `metadata={"session_id": ...}`. Without a name, the user's answers are not
    accepted. The metadata `"bylaw_agent": "specialist"` names an inner agent, whose input is not the user's. With
    `instruct`, the shield's instructions follow the system messages.
    """

    def __init__(self, shield: Shield | Pack | str | Path, *, context: Context = None, **more: Any) -> None:
        more.setdefault("guardrail_name", "bylaw")
        hooks = [GuardrailEventHooks.pre_call, GuardrailEventHooks.post_call]
        super().__init__(shield, context=context, **{**more, "event_hook": hooks, "default_on": True})
        self._unseen: OrderedDict[str, list[dict[str, Any]]] = OrderedDict()
        """Exchanges that the caller has not seen, keyed by the earlier messages or by the adjacent call."""
        self._notes: OrderedDict[str, str] = OrderedDict()
        """Advice about allowed calls, by call id. Appended to their results."""

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        """Insert earlier exchanges into a request. Reject a request that cannot be shielded."""
        if call_type not in CHATS:
            if kwargs.get("tools") and call_type is not None:
                raise UsageError(
                    f"the shield supports only chat completions, not `{getattr(call_type, 'value', call_type)}`"
                )
            return None
        if "model" not in kwargs or "messages" not in kwargs:
            hint = "`acompletion(model=..., messages=...)`"
            raise UsageError("a LiteLLM guardrail sees only named arguments", hint=hint)
        body = {**kwargs, **(kwargs.get("extra_body") or {})}
        if body.get("tools") or body.get("functions"):
            if body.get("stream"):
                hint = "remove `stream` from requests with tools"
                raise UsageError("a streamed call cannot be stopped", hint=hint)
            if body.get("n") not in (None, 1):
                raise UsageError(ONE_ANSWER, hint="remove `n`")
            # LiteLLM does not show answers from its cache to guardrails.
            kwargs["cache"] = {**(kwargs.get("cache") or {}), "no-cache": True}
        kwargs["messages"] = self._whole(_scope(kwargs), self._own(kwargs.get("messages") or []))
        if (told := self.instructions) and not _told(kwargs, "bylaw_agent"):
            kwargs["messages"] = _after_system(kwargs["messages"], told)
        return kwargs

    def _own(self, messages: Sequence[Any]) -> list[Any]:
        told = self.instructions
        return [each for each in messages if not told or _plain(each) != _plain(_system(told))]

    async def async_post_call_success_deployment_hook(
        self, request_data: dict[str, Any], response: Any, call_type: Any
    ) -> Any:
        """Decide the calls in a response. Remove stopped calls, or ask the model again."""
        choices = getattr(response, "choices", None)
        if call_type not in CHATS or not choices:
            return None
        message = choices[0].message
        if any(each.message.tool_calls for each in choices[1:]):
            raise UsageError(ONE_ANSWER)
        if any(getattr(each.message, "function_call", None) for each in choices):
            raise UsageError(
                "a call in the form `function_call` cannot be stopped", hint="use `tools`, not `functions`"
            )
        before, scope = self._own(request_data["messages"]), _scope(request_data)
        asked = list(getattr(message, "tool_calls", None) or ())
        decided = await asyncio.to_thread(self._decided, request_data, before, message, asked)
        self._keep(
            self._notes,
            {
                scope + call.id: one.feedback
                for call, one in zip(asked, decided, strict=True)
                if scope and one.allowed and one.feedback
            },
        )
        refused = [(call, one) for call, one in zip(asked, decided, strict=True) if not one.allowed]
        if not refused:
            return response
        told = [{"role": "tool", "tool_call_id": call.id, "content": one.feedback} for call, one in refused]
        stopped = {call.id for call, _ in refused}
        allowed = [call for call in asked if call.id not in stopped]
        if allowed:
            behind = {"role": "assistant", "tool_calls": [_call(call) for call, _ in refused]}
            self._keep(self._unseen, {scope + _beside(allowed): [behind, *told]} if scope else {})
            message.tool_calls = allowed
            return response
        exchange = [
            {"role": "assistant", "content": message.content, "tool_calls": [_call(call) for call in asked]},
            *told,
        ]
        self._keep(self._unseen, {scope + _digest(before): exchange} if scope else {})
        if _round.get() >= ROUNDS:
            message.tool_calls, message.content = None, "\n\n".join(one.feedback for _, one in refused)
            choices[0].finish_reason = "stop"
            return response
        again = {name: value for name, value in request_data.items() if value is not None and name not in _OURS}
        token = _round.set(_round.get() + 1)
        try:
            return await litellm.acompletion(**{**again, "messages": [*before, *exchange]})
        finally:
            _round.reset(token)

    def _decided(self, request: dict[str, Any], before: list[Any], message: Any, asked: list[Any]) -> list[Decision]:
        key, agent = _told(request, "session_id"), _told(request, "bylaw_agent")
        guard = self._guard.inner(agent) if agent else self._guard
        calls = tuple(Asked(call.id, call.function.name, call.function.arguments or "{}") for call in asked)
        parts = [*_parts(before), *_parts([message])]
        if not calls:
            guard.end(key, request, parts)
        return [guard.decide(key, request, parts, call)[2] for call in calls]

    def _whole(self, scope: str, messages: Sequence[Any]) -> list[Any]:
        """Return the messages as the model has seen them."""
        found: list[Any] = []
        for message in messages:
            while unseen := self._unseen.get(scope + _digest(found)):
                if _plain(message) == _plain(unseen[0]):
                    break
                found += unseen
            plain = _plain(message)
            if plain["tool_calls"] and (behind := self._unseen.get(scope + _beside(plain["tool_calls"]))):
                first, *told = behind
                found += [
                    {
                        "role": "assistant",
                        "content": plain["content"] or None,
                        "tool_calls": [*plain["tool_calls"], *first["tool_calls"]],
                    },
                    *told,
                ]
            elif plain["role"] == "tool" and (note := self._notes.get(scope + plain.get("tool_call_id", ""))):
                found.append({**plain, "content": with_note(plain["content"], note)})
            else:
                found.append(message)
        return found

    def _keep(self, kept: OrderedDict[str, Any], new: Mapping[str, Any]) -> None:
        kept.update(new)
        while len(kept) > KEPT:
            kept.popitem(last=False)


def _told(request: Mapping[str, Any], name: str) -> str:
    for place in ("metadata", "litellm_metadata"):
        given = request.get(place)
        if isinstance(given, Mapping) and given.get(name):
            return str(given[name])
    return str(request.get("litellm_session_id") or "") if name == "session_id" else ""


def _scope(request: Mapping[str, Any]) -> str:
    """Return a key for a conversation and its caller. Empty without a session id, because messages alone do not
    identify a conversation.
    """
    session = _told(request, "session_id")
    callers = [_told(request, name) for name in _CALLERS]
    return (
        f"{hashlib.sha256(msgspec.json.encode([session, str(request.get('user') or ''), *callers])).hexdigest()}:"
        if session
        else ""
    )


def _system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


def _after_system(messages: Sequence[Any], told: str) -> list[Any]:
    at = next((at for at, each in enumerate(messages) if _plain(each)["role"] not in ("system", "developer")), 0)
    return [*messages[:at], _system(told), *messages[at:]]


def _call(call: Any) -> dict[str, Any]:
    given = call if isinstance(call, Mapping) else {"id": call.id, "function": call.function}
    function = given["function"]
    told = function if isinstance(function, Mapping) else {"name": function.name, "arguments": function.arguments}
    return {
        "id": given["id"],
        "type": "function",
        "function": {"name": told["name"], "arguments": told["arguments"] or "{}"},
    }


def _plain(message: Any) -> dict[str, Any]:
    read = message.get if isinstance(message, Mapping) else lambda name, _message=message: getattr(_message, name, None)
    plain: dict[str, Any] = {"role": read("role"), "content": plain_text(read("content") or "")}
    whole = True
    if plain["role"] == "user":
        plain["content"], whole = heard(read("content") or "")
        plain |= {"name": read("name")} if read("name") else {}
    elif plain["role"] == "assistant":
        whole = is_all_words(read("content")) and not (read("audio") or read("images"))
    plain |= {} if whole else {"more": True}
    plain["tool_calls"] = [_call(call) for call in read("tool_calls") or ()]
    if read("tool_call_id"):
        plain["tool_call_id"] = read("tool_call_id")
    return plain


def _digest(messages: Sequence[Any]) -> str:
    return hashlib.sha256(msgspec.json.encode([_plain(message) for message in messages])).hexdigest()


def _beside(calls: Sequence[Any]) -> str:
    return "beside " + " ".join(str(call["id"] if isinstance(call, Mapping) else call.id) for call in calls)


def _parts(messages: Sequence[Any]) -> list[Part]:
    parts: list[Part] = []
    for message in messages:
        plain = _plain(message)
        match plain["role"]:
            case "user":
                is_theirs = not (plain.get("name") or plain.get("tool_call_id"))
                parts.append(Heard(plain["content"] if is_theirs else "", whole=is_theirs and not plain.get("more")))
            case "assistant":
                calls = [
                    (call["id"], call["function"]["name"], call["function"]["arguments"])
                    for call in plain["tool_calls"]
                ]
                asked = tuple(Asked(*call) for call in calls)
                parts.append(Turn(plain["content"], asked, whole=not plain.get("more")))
            case "tool":
                parts.append(Answered(plain.get("tool_call_id", ""), plain["content"]))
            case _:
                pass
    return parts
