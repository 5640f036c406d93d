"""What a conversation had shown before one call, and the words that the call is held to."""

from collections.abc import Iterable, Mapping
from functools import partial

from bylaw.engine.request.allowance import Span
from bylaw.engine.request.bearing import folded
from bylaw.facts.provenance import Provenance, Traced
from bylaw.facts.result_places import ResultPlaces
from bylaw.policy.tool import Tool


class View:
    """All that the values of one call are held against: `Provenance` as of the step before it."""

    def __init__(self, provenance: Provenance, tools: Mapping[str, Tool], request: str, before: int) -> None:
        """`request` is all that the user said, and after it a text that the user handed over to, if there is one."""
        self.tools, self.request = tools, request
        self.text, self.places, self.own_fields = provenance.text, provenance.places, provenance.own_fields
        self.sights = partial(provenance.sights, before=before)
        self.trace = partial(provenance.trace, before=before)
        self.results = partial(provenance.results, before=before)
        self.mentions = partial(provenance.mentions, before=before)
        self.numbers = partial(provenance.numbers, before=before)
        self.is_said = partial(provenance.is_said, before=before)

    def words(self, spans: Iterable[Span]) -> tuple[str, ...]:
        """Words of the request, folded."""
        return folded(self.request, tuple(spans))

    def around(self, sight: Traced) -> ResultPlaces:
        """The result that a value stands in."""
        return self.places(step_of(sight))

    def records(self, step: int) -> list[Mapping[str, str]]:
        """The records of a result, each by its fields, folded."""
        places = self.places(step)
        return [places.fields(number) for number in range(len(places.records))]


def step_of(sight: Traced) -> int:
    """The step of the result that shows a value."""
    assert sight.step is not None
    return sight.step
