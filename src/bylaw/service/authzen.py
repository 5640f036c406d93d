"""AuthZEN 1.0's evaluation: may this subject do this action on this resource? The action is the tool's call.

https://openid.net/specs/authorization-api-1_0.html. `action.name` is the tool and `action.properties` its arguments;
`context.conversation` names the conversation, `context.events` may say what happened in it before.
"""

from typing import Any

import msgspec
from msgspec import Struct, field

from bylaw.service.request import DecideAnswer, DecideRequest, Event


class Subject(Struct, frozen=True):
    """Who asks."""

    type: str
    id: str
    properties: dict[str, Any] = field(default_factory=dict[str, Any])


class Action(Struct, frozen=True):
    """The call."""

    name: str
    properties: dict[str, Any] = field(default_factory=dict[str, Any])


class Resource(Struct, frozen=True):
    """What it is about. Its properties are arguments that the action does not say."""

    type: str
    id: str
    properties: dict[str, Any] = field(default_factory=dict[str, Any])


class Circumstances(Struct, frozen=True):
    """`context` of a request; what else it holds is not looked at."""

    conversation: str = ""
    events: list[Event] = field(default_factory=list[Event])
    call_id: str = ""


class Evaluation(Struct, frozen=True):
    """A request."""

    subject: Subject
    action: Action
    resource: Resource
    context: Circumstances = Circumstances()


class Evaluated(Struct, frozen=True):
    """The answer: whether the call may run, and why."""

    decision: bool
    context: dict[str, Any]


def request_of(evaluation: Evaluation) -> DecideRequest:
    """The same question in our own words."""
    about = evaluation.context
    arguments = {**evaluation.resource.properties, **evaluation.action.properties}
    context = {**evaluation.subject.properties, "subject": evaluation.subject.id}
    call = (evaluation.action.name, arguments, about.call_id)
    return DecideRequest(about.conversation, *call, events=about.events, context=context)


def evaluated(answer: DecideAnswer) -> Evaluated:
    """The answer in AuthZEN's words."""
    (decided,) = answer.decisions
    return Evaluated(decided.allowed, {"reason_user": {"en": decided.feedback}, **msgspec.to_builtins(decided)})
