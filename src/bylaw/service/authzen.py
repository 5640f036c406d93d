"""AuthZEN 1.0's evaluations: may this subject do this action on this resource? The action is the tool's call.

https://openid.net/specs/authorization-api-1_0.html. `action.name` is the tool and `action.properties` its arguments;
`context.conversation` names the conversation, `context.events` may say what happened in it before.
"""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace

from bylaw.engine.door import PRINCIPAL
from bylaw.service.request import BadRequest, DecideAnswer, DecideRequest, Event, Failure

CONFIGURATION = "/.well-known/authzen-configuration"
AGENT = "agent"
"""The type of a subject that acts for somebody else. Every other one is itself the principal of its conversations."""
EVALUATION = "/access/v1/evaluation"
EVALUATIONS = "/access/v1/evaluations"


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
    agent: str = ""
    """The agent that acts, where the subject is somebody else."""


class Evaluation(Struct, frozen=True):
    """A request."""

    subject: Subject
    action: Action
    resource: Resource
    context: Circumstances = Circumstances()


class Asked(Struct, frozen=True):
    """One of several evaluations; what it does not say is as the request says for all."""

    subject: Subject | UnsetType = UNSET
    action: Action | UnsetType = UNSET
    resource: Resource | UnsetType = UNSET
    context: Circumstances | UnsetType = UNSET


class Options(Struct, frozen=True):
    """Whether all are evaluated, or those up to the first that is denied, or permitted."""

    evaluations_semantic: Literal["execute_all", "deny_on_first_deny", "permit_on_first_permit"] = "execute_all"

    def ends_at(self, decision: bool) -> bool:
        """Whether nothing is evaluated after this."""
        return self.evaluations_semantic == ("permit_on_first_permit" if decision else "deny_on_first_deny")


class Evaluations(Asked, frozen=True):
    """Several evaluations, in order, and what all of them have in common. With none it is one evaluation itself."""

    evaluations: list[Asked] = field(default_factory=list[Asked])
    options: Options = Options()

    def each(self) -> list[Evaluation]:
        """All of them, whole; one that lacks something makes the request one that cannot be read."""
        return [self._whole(each, f" of evaluation {number}") for number, each in enumerate(self.evaluations)]

    def alone(self) -> Evaluation:
        """The one evaluation that it is itself."""
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
    """The answer: whether the call may run, and why."""

    decision: bool
    context: dict[str, Any]


class EvaluatedAll(Struct, frozen=True):
    """The answers, in order, up to where the evaluation ended; of a request that is one evaluation, its answer."""

    evaluations: list[Evaluated] | UnsetType = UNSET
    decision: bool | UnsetType = UNSET
    context: dict[str, Any] | UnsetType = UNSET


class Configuration(Struct, frozen=True):
    """Where what is."""

    policy_decision_point: str
    access_evaluation_endpoint: str
    access_evaluations_endpoint: str


def configuration(url: str) -> Configuration:
    """The discovery document of a service that is reached under a URL."""
    base = url.rstrip("/")
    return Configuration(url, base + EVALUATION, base + EVALUATIONS)


def request_of(evaluation: Evaluation) -> DecideRequest:
    """The same question in our own words."""
    about, subject = evaluation.context, evaluation.subject
    arguments = {**evaluation.resource.properties, **evaluation.action.properties}
    context, agent = {**subject.properties, "subject": subject.id}, subject.id
    if subject.type != AGENT:
        context.setdefault(PRINCIPAL, subject.id)
        agent = about.agent
    call = (evaluation.action.name, arguments, about.call_id)
    return DecideRequest(about.conversation, *call, events=about.events, context=context, agent=agent)


def evaluated(answer: DecideAnswer) -> Evaluated:
    """The answer in AuthZEN's words."""
    (decided,) = answer.decisions
    return Evaluated(decided.allowed, {"reason_user": {"en": decided.feedback}, **msgspec.to_builtins(decided)})


def refused(status: int, told: Failure) -> Evaluated:
    """Why there is no decision on one of several: it is denied."""
    error = {"status": status, "code": told.error.code, "message": told.error.message}
    return Evaluated(False, {"reason_user": {"en": told.error.message}, "error": error})


def without_events(evaluation: Evaluation) -> Evaluation:
    """The same, where what happened before has been told."""
    return replace(evaluation, context=replace(evaluation.context, events=[]))
