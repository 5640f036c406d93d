"""The `limits:` of a pack's `rules.yaml`: what may be done so many times within a time, over all conversations."""

from collections.abc import Callable, Mapping
from typing import Any, get_args

from msgspec import Struct

from bylaw.errors import meant
from bylaw.facts.schema import Schema
from bylaw.policy.reading import Scalar
from bylaw.policy.statement import Policy
from bylaw.rule.limit import Limit, Over
from bylaw.text.duration import read_duration

PER = "per is `tenant`, `agent`, `context.NAME` or `call.ARGUMENT`"
TellFault = Callable[..., None]


class WrittenLimit(Struct, frozen=True, forbid_unknown_fields=True):
    """A limit in rules.yaml."""

    id: Scalar = ""
    policy: Scalar | None = None
    tool: Scalar | list[Scalar] = ""
    most: int = 0
    within: Scalar = ""
    per: Scalar = "tenant"
    over: Scalar = "deny"


def read_limits(
    written: list[WrittenLimit], schema: Schema, policies: Mapping[str, Policy], fault: TellFault
) -> tuple[Limit, ...]:
    """The limits; `fault` is told of what is wrong with one, and where it stands."""
    found: dict[str, Limit] = {}
    for index, body in enumerate(written):
        limit = _read(body, index, schema, policies, fault)
        if limit.name in found:
            fault(f"there are two limits `{limit.name}`", "limits", index)
        found[limit.name] = limit
    return tuple(found.values())


def _read(body: WrittenLimit, index: int, schema: Schema, policies: Mapping[str, Policy], fault: TellFault) -> Limit:
    at = ("limits", index)
    name = str(body.id)
    policy = name if body.policy is None else str(body.policy)
    given: list[Any] = body.tool if isinstance(body.tool, list) else [body.tool]
    tools = frozenset(str(tool) for tool in given if tool != "")
    within = read_duration(str(body.within))
    if not name or not tools:
        fault("a limit needs an `id` and a `tool`", *at)
    if policy not in policies:
        message = f"limit `{name}` names a policy `{policy}` that does not exist"
        fault(message, *at, hint=meant(policy, policies), lacks=f"policy {policy}")
    for tool in sorted(tools - schema.tools.keys()):
        fault(f"`{tool}` is not a tool", *at, hint=meant(tool, schema.tools), lacks=f"tool {tool}")
    if body.most < 1:
        fault(f"`most` of limit `{name}` is not a number from 1 on", *at, hint="what is never allowed is a guard")
    if within is None:
        fault(f"`within` of limit `{name}` is not a time", *at, hint="such as 30m, 1h or 7d")
    over: Over = "ask" if body.over == "ask" else "deny"
    if body.over not in get_args(Over):
        fault(f"`over` of limit `{name}` is `{body.over}`", *at, hint="deny or ask")
    _check_per(str(body.per), name, tools, schema, at, fault)
    return Limit(name, policy, tools, body.most, within or 1.0, str(body.per), over)


def _check_per(
    per: str, name: str, tools: frozenset[str], schema: Schema, at: tuple[str | int, ...], fault: TellFault
) -> None:
    where, _, what = per.partition(".")
    if per in ("tenant", "agent") or (where == "context" and what):
        return
    if where != "call" or not what:
        fault(f"limit `{name}` counts per `{per}`", *at, hint=PER)
        return
    for tool in sorted(tools & schema.tools.keys()):
        parameters = schema.tools[tool].parameters
        if what not in parameters:
            fault(f"`{tool}` has no argument `{what}` to count by", *at, hint=meant(what, parameters))
