"""AuthZEN 1.0 evaluations: may this subject perform this action on this resource? The action is the tool call.

https://openid.net/specs/authorization-api-1_0.html

`action.name` is the tool, and `action.properties` contains its arguments. `context.conversation` names the
conversation, and `context.events` may list earlier events.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field
from msgspec.structs import replace

from bylaw.engine.door import PRINCIPAL
from bylaw.service.request import MANY, BadRequest, DecideAnswer, DecideRequest, Event, Failure

CONFIGURATION = "/.well-known/authzen-configuration"
AGENT = "agent"
"""The type of a subject that is an agent acting for someone else. A subject of any other type is the conversation's
principal.
"""
EVALUATION = "/access/v1/evaluation"
EVALUATIONS = "/access/v1/evaluations"


class Subject(Struct, frozen=True):
    """Who wants to perform the action: the principal or an agent."""

    type: str
    id: str
    properties: dict[str, Any] = field(default_factory=dict[str, Any])


class Action(Struct, frozen=True):
    """The action: a call to the tool `name`."""

    name: str
    properties: dict[str, Any] = field(default_factory=dict[str, Any])


class Resource(Struct, frozen=True):
    """The resource of the action. Its properties are additional arguments of the call."""

    type: str
    id: str
    properties: dict[str, Any] = field(default_factory=dict[str, Any])


class Circumstances(Struct, frozen=True):
    """The `context` of an evaluation. Unknown members are ignored."""

    conversation: str = ""
    events: Annotated[list[Event], Meta(max_length=MANY)] = field(default_factory=list[Event])
    call_id: str = ""
    agent: str = ""
    """The agent that acts for the subject, if the subject is a person."""


class Evaluation(Struct, frozen=True):
    """A single evaluation request."""

    subject: Subject
    action: Action
    resource: Resource
    context: Circumstances = Circumstances()


class Asked(Struct, frozen=True):
    """One of several evaluations. Members that are missing are taken from the whole request."""

    subject: Subject | UnsetType = UNSET
    action: Action | UnsetType = UNSET
    resource: Resource | UnsetType = UNSET
    context: Circumstances | UnsetType = UNSET


class Options(Struct, frozen=True):
    """Whether to make all evaluations or to stop at the first denial or at the first permission."""

    evaluations_semantic: Literal["execute_all", "deny_on_first_deny", "permit_on_first_permit"] = "execute_all"

    def ends_at(self, decision: bool) -> bool:
        return self.evaluations_semantic == ("permit_on_first_permit" if decision else "deny_on_first_deny")


class Evaluations(Asked, frozen=True):
    """Several evaluations in order, with common defaults. Without a list, the request is a single evaluation."""

    evaluations: Annotated[list[Asked], Meta(max_length=MANY)] = field(default_factory=list[Asked])
    options: Options = Options()

    def each(self) -> list[Evaluation]:
        """Return all evaluations with the defaults applied. Raises an error if an evaluation is incomplete."""
        return [self._whole(each, f" of evaluation {number}") for number, each in enumerate(self.evaluations)]

    def alone(self) -> Evaluation:
        return self._whole(self, "")

    def _whole(self, asked: Asked, whose: str) -> Evaluation:
        subject = self.subject if asked.subject is UNSET else asked.subject
        action = self.action if asked.action is UNSET else asked.action
        resource = self.resource if asked.resource is UNSET else asked.resource
        context = self.context if asked.context is UNSET else asked.context
        if subject is UNSET or action is UNSET or resource is UNSET:
            raise BadRequest(f"the `subject`, the `action` or the `resource`{whose} is missing")
        return Evaluation(subject, action, resource, Circumstances() if context is UNSET else context)


class Evaluated(Struct, frozen=True):
    """The response: whether the call is allowed, and why."""

    decision: bool
    context: dict[str, Any]


class EvaluatedAll(Struct, frozen=True):
    """One response per evaluation, in order. The last one is that of the last evaluation made."""

    evaluations: list[Evaluated] | UnsetType = UNSET
    decision: bool | UnsetType = UNSET
    context: dict[str, Any] | UnsetType = UNSET


class Configuration(Struct, frozen=True):
    """The endpoints of the service."""

    policy_decision_point: str
    access_evaluation_endpoint: str
    access_evaluations_endpoint: str


def configuration(url: str) -> Configuration:
    """Return the discovery document of the service at a URL."""
    base = url.rstrip("/")
    return Configuration(url, base + EVALUATION, base + EVALUATIONS)


def request_of(evaluation: Evaluation) -> DecideRequest:
    about, subject = evaluation.context, evaluation.subject
    arguments = {**evaluation.resource.properties, **evaluation.action.properties}
    context, agent = {**subject.properties, "subject": subject.id}, subject.id
    if subject.type != AGENT:
        context[PRINCIPAL] = subject.id
        agent = about.agent
    call = (evaluation.action.name, arguments, about.call_id)
    return DecideRequest(about.conversation, *call, events=about.events, context=context, agent=agent)


def evaluated(answer: DecideAnswer) -> Evaluated:
    (decided,) = answer.decisions
    return Evaluated(decided.allowed, {"reason_user": {"en": decided.feedback}, **msgspec.to_builtins(decided)})


def refused(status: int, told: Failure) -> Evaluated:
    """Return a denial for an evaluation that could not be decided, with the reason."""
    error = {"status": status, "code": told.error.code, "message": told.error.message}
    return Evaluated(False, {"reason_user": {"en": told.error.message}, "error": error})


def without_events(evaluation: Evaluation) -> Evaluation:
    return replace(evaluation, context=replace(evaluation.context, events=[]))
