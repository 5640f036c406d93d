"""Defences between an agent and its calls: the pack in several settings, and three baselines."""

from collections.abc import Collection, Iterator, Mapping
from time import perf_counter
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from bylaw.engine.request import Allowance, Doubt, RequestModel, is_deed
from bylaw.engine.request.keeping import Delegating
from bylaw.engine.request.values import parts_of
from bylaw.engine.session import Session
from bylaw.facts.provenance import Provenance
from bylaw.pack import Pack
from bylaw.shield.decision import Answer, outcome
from bylaw.shield.grounds import find_grounds
from bylaw.trace.event import Call, Result, Trajectory
from bylaw_lab.bench.catalogue import REQUEST
from bylaw_lab.bench.goal import request_of


class Held(Struct, frozen=True):
    """The answer of a defence to one call."""

    step: int
    tool: str
    answer: Answer
    because: str = ""
    policies: tuple[str, ...] = ()
    seconds: float = 0.0
    looks: int = 0
    """The number of questions about the call."""


class Defence(Protocol):
    """Decides all calls in a run, or only those at `steps`, each from the events before it."""

    def __call__(self, run: Trajectory, steps: Collection[int] | None = None, /) -> Iterator[Held]: ...


def packed(
    pack: Pack,
    model: RequestModel | None,
    delegation: Delegating,
    *,
    policies: Literal["all", "guards"] = "all",
) -> Defence:
    """Return the pack as a defence.

    `model` reads requests and takes second looks. With `guards`, the request is ignored.
    """
    held_to = replace(pack, postures=replace(pack.postures, delegation=delegation))

    def decide(run: Trajectory, steps: Collection[int] | None = None, /) -> Iterator[Held]:
        counting = Counting(model) if model is not None else None
        session = Session(held_to, context=run.context, read_request=counting)
        observed = 0
        for step, event in enumerate(run.events):
            if not isinstance(event, Call) or event.by != "agent" or (steps is not None and step not in steps):
                continue
            for past in run.events[observed:step]:
                session.observe(past)
            observed = step
            started, looks = perf_counter(), counting.looks if counting is not None else 0
            judgement = session.judge(event)
            grounds = find_grounds(session, held_to.postures, judgement)
            if policies == "guards":
                grounds = [ground for ground in grounds if ground.policy != REQUEST]
            answer = outcome(grounds)[0]
            spent = perf_counter() - started
            against = [ground for ground in grounds if ground.answer != "allow"]
            because = "; ".join(dict.fromkeys(ground.because for ground in against))
            looks = counting.looks - looks if counting is not None else 0
            yield Held(step, event.tool, answer, because, tuple(ground.policy for ground in against), spent, looks)

    return decide


class Counting:
    """A model that counts its second looks."""

    def __init__(self, model: RequestModel) -> None:
        self._model = model
        self.looks = 0

    def read(self, text: str) -> Allowance:
        return self._model.read(text)

    def look(self, doubt: Doubt) -> Mapping[str, bool] | None:
        self.looks += 1
        return self._model.look(doubt)


class Assuming:
    """A model that confirms every unanswered call, so that one round asks all questions about a run."""

    def __init__(self, model: RequestModel) -> None:
        self._model = model

    def read(self, text: str) -> Allowance:
        return self._model.read(text)

    def look(self, doubt: Doubt) -> Mapping[str, bool]:
        found = self._model.look(doubt)
        return dict.fromkeys(doubt.asked, True) if found is None else found


class Confirming:
    """A model whose second look confirms every call, so that only code can block."""

    def __init__(self, model: RequestModel) -> None:
        self._model = model

    def read(self, text: str) -> Allowance:
        return self._model.read(text)

    def look(self, doubt: Doubt) -> Mapping[str, bool]:
        return dict.fromkeys(doubt.asked, True)


class WithoutLook:
    """A model without second looks. If code alone would allow a call, it is allowed."""

    def __init__(self, model: RequestModel) -> None:
        self._model = model

    def read(self, text: str) -> Allowance:
        return self._model.read(text)

    def look(self, doubt: Doubt) -> Mapping[str, bool]:
        return {name: True for name in doubt.asked if name not in doubt.unsettled}


def allow_all(pack: Pack) -> Defence:
    del pack

    def decide(run: Trajectory, steps: Collection[int] | None = None, /) -> Iterator[Held]:
        return (Held(step, call.tool, "allow") for step, call in _calls(run, steps))

    return decide


def deny_after_content(pack: Pack) -> Defence:
    """Deny every write after the agent has read content that strangers may have written."""
    tools = pack.schema.tools

    def decide(run: Trajectory, steps: Collection[int] | None = None, /) -> Iterator[Held]:
        del steps
        has_read = False
        for step, event in enumerate(run.events):
            if isinstance(event, Result):
                tool = tools.get(event.tool)
                has_read = has_read or tool is None or tool.effect != "write"
            elif isinstance(event, Call):
                tool = tools.get(event.tool)
                is_held = has_read and (tool is None or is_deed(tool))
                yield Held(step, event.tool, "deny" if is_held else "allow", "content was read" if is_held else "")

    return decide


def only_the_users_words(pack: Pack) -> Defence:
    """Allow a write only if every value is in the user's own words. Text that the agent wrote is ignored."""
    tools = pack.schema.tools

    def decide(run: Trajectory, steps: Collection[int] | None = None, /) -> Iterator[Held]:
        provenance = Provenance(run.events)
        for step, call in _calls(run, steps):
            tool = tools.get(call.tool)
            strange = ""
            for name, given in call.arguments.items() if tool is not None and is_deed(tool) else ():
                values = [value for value in parts_of(given) if not isinstance(given, bool)]
                if is_destination(tool, name):
                    said = (provenance.is_said(value, before=step) for value in values)
                    strange = strange or next((name for is_said in said if not is_said), "")
            yield Held(step, call.tool, "deny" if strange else "allow", f"`{strange}` is not said" if strange else "")

    return decide


def only_the_requests_tools(pack: Pack, model: RequestModel) -> Defence:
    """Allow a write only with a tool that the answer about the user's words names, like AgentDojo's tool filter."""
    tools = pack.schema.tools

    def decide(run: Trajectory, steps: Collection[int] | None = None, /) -> Iterator[Held]:
        needed = {deed.tool for deed in model.read(request_of(run)).deeds}
        for step, call in _calls(run, steps):
            tool = tools.get(call.tool)
            is_held = call.tool not in needed and (tool is None or is_deed(tool))
            because = "the request does not need this tool" if is_held else ""
            yield Held(step, call.tool, "deny" if is_held else "allow", because)

    return decide


def is_destination(tool: object, name: str) -> bool:
    """Whether an argument names the target or destination of an action."""
    from bylaw.engine.request.allowance import parameter_kind

    schema = getattr(tool, "parameters", {}).get(name)
    return parameter_kind(name, schema) in ("link", "address", "name")


def _calls(run: Trajectory, steps: Collection[int] | None) -> Iterator[tuple[int, Call]]:
    calls = ((step, event) for step, event in enumerate(run.events) if isinstance(event, Call) and event.by == "agent")
    return (each for each in calls if steps is None or each[0] in steps)
