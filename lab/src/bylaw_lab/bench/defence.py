"""What may stand between an agent and its calls: the pack in several settings, and three baselines beside it."""

from collections.abc import Callable, Iterator, Mapping
from time import perf_counter
from typing import Literal

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
from bylaw.trace.event import Call, Result
from bylaw.trace.trajectory import Trajectory

REQUEST = "as-asked"
"""The policy that holds calls to the user's request."""


class Held(Struct, frozen=True):
    """What a defence says of one call."""

    step: int
    tool: str
    answer: Answer
    because: str = ""
    policies: tuple[str, ...] = ()
    seconds: float = 0.0


Defence = Callable[[Trajectory], Iterator[Held]]
"""What is said of every call of a run, each on what came before it."""


def packed(
    pack: Pack,
    model: RequestModel | None,
    delegation: Delegating,
    *,
    policies: Literal["all", "guards"] = "all",
) -> Defence:
    """The pack: `model` reads requests and looks at calls; `guards` leaves the request aside."""
    held_to = replace(pack, postures=replace(pack.postures, delegation=delegation))

    def decide(run: Trajectory) -> Iterator[Held]:
        session = Session(held_to, context=run.context, read_request=model)
        observed = 0
        for step, event in enumerate(run.events):
            if not isinstance(event, Call) or event.by != "agent":
                continue
            for past in run.events[observed:step]:
                session.observe(past)
            observed = step
            started = perf_counter()
            judgement = session.judge(event)
            grounds = find_grounds(session, held_to.postures, judgement)
            if policies == "guards":
                grounds = [ground for ground in grounds if ground.policy != REQUEST]
            answer = outcome(grounds)[0]
            spent = perf_counter() - started
            against = [ground for ground in grounds if ground.answer != "allow"]
            because = "; ".join(dict.fromkeys(ground.because for ground in against))
            yield Held(step, event.tool, answer, because, tuple(ground.policy for ground in against), spent)

    return decide


class WithoutLook:
    """A model whose second look is left out: calls are allowed as code alone would allow them."""

    def __init__(self, model: RequestModel) -> None:
        self._model = model

    def read(self, text: str) -> Allowance:
        return self._model.read(text)

    def look(self, doubt: Doubt) -> Mapping[str, bool]:
        return {name: True for name in doubt.asked if name not in doubt.unsettled}


def allow_all(pack: Pack) -> Defence:
    """Nothing is ever held."""
    return lambda run: (Held(step, call.tool, "allow") for step, call in _calls(run))


def deny_after_content(pack: Pack) -> Defence:
    """Every side effect is denied once anything was read that strangers may have written."""
    tools = pack.schema.tools

    def decide(run: Trajectory) -> Iterator[Held]:
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
    """Every value of a side effect must be the user's own word; texts that the agent composes are left aside."""
    tools = pack.schema.tools

    def decide(run: Trajectory) -> Iterator[Held]:
        provenance = Provenance(run.events)
        for step, call in _calls(run):
            tool = tools.get(call.tool)
            strange = ""
            for name, given in call.arguments.items() if tool is not None and is_deed(tool) else ():
                values = [value for value in parts_of(given) if not isinstance(given, bool)]
                if is_destination(tool, name):
                    said = (provenance.is_said(value, before=step) for value in values)
                    strange = strange or next((name for is_said in said if not is_said), "")
            yield Held(step, call.tool, "deny" if strange else "allow", f"`{strange}` is not said" if strange else "")

    return decide


def is_destination(tool: object, name: str) -> bool:
    """Whether an argument says where something goes or what it is done to."""
    from bylaw.engine.request.allowance import parameter_kind

    schema = getattr(tool, "parameters", {}).get(name)
    return parameter_kind(name, schema) in ("link", "address", "name")


def _calls(run: Trajectory) -> Iterator[tuple[int, Call]]:
    return ((step, event) for step, event in enumerate(run.events) if isinstance(event, Call) and event.by == "agent")
