"""Finds where the arguments of writes come from, and those without a known source."""

from collections import Counter

from msgspec import Struct
from msgspec.structs import replace

from bylaw.facts.evidence import wilson
from bylaw.facts.provenance import OriginKind, ValueOrigin
from bylaw.scan.habit import CallPlace
from bylaw.scan.link import Firsts, is_id
from bylaw.text.identifier import is_identifier

_DISTINCT = 1_000
_USUAL = 0.8
_VALUE = 80


class Strange(Struct, frozen=True):
    """One value with a questionable origin."""

    place: CallPlace
    value: str
    source: str = ""
    """For free text: the tool whose result contained it, and the step, such as `read_file @2`."""


class Argument(Struct, frozen=True):
    """One argument of a write tool, and the origins of its values."""

    tool: str
    name: str
    """Its path, e.g. `flights[].flight_number`."""
    cases: int
    user: int
    host: int
    record: int
    text: int
    nowhere: int
    vocabulary: bool
    """Whether it takes only a few words, such as kinds and classes, which need no origin."""
    sure: float
    """Confidence that a value without origin is unusual: the lower bound of the share of values with one."""
    ids: bool = False
    """Whether its values are identifiers: codes, addresses, links."""
    strange: tuple[Strange, ...] = ()
    """The first values without origin, if nearly all others have one or, for a few ids, may have one."""
    left_out: tuple[Strange, ...] = ()
    """The first values without origin, if too few others have one or the argument takes only a few words."""
    from_text: tuple[Strange, ...] = ()
    """The first values found only in free text inside a tool result."""

    @property
    def usual(self) -> bool:
        """Whether nearly all its values have an origin, so that one without is unusual."""
        known = self.cases - self.nowhere
        # Ids are rarely invented: for a few, it is enough that nearly all may have an origin.
        share = wilson(known, self.cases)[1] if self.ids else known / max(1, self.cases)
        return not self.vocabulary and self.sure > 0 and share >= _USUAL


class Origins:
    """Counts for one argument of one tool."""

    def __init__(self, examples: int) -> None:
        self.kinds: Counter[OriginKind] = Counter()
        self._distinct: set[str] = set()
        self._nowhere = Firsts[Strange](examples)
        self._text = Firsts[Strange](examples)

    def add(self, value: str | float, origin: ValueOrigin, place: CallPlace) -> None:
        self.kinds[origin.kind] += 1
        shown = str(value)[:_VALUE]
        if len(self._distinct) < _DISTINCT:
            self._distinct.add(shown)
        if origin.kind == "nowhere":
            self._nowhere.add((place.order, shown), Strange(place, shown))
        elif origin.kind == "text":
            self._text.add((place.order, shown), Strange(place, shown, f"{origin.tool} @{origin.step}"))

    def summary(self, tool: str, name: str) -> Argument:
        kinds, cases = self.kinds, self.kinds.total()
        words = [value for value in self._distinct if not is_identifier(value) and not value[:1].isdigit()]
        few = cases >= 10 and len(self._distinct) * 10 <= cases and len(self._distinct) < _DISTINCT
        vocabulary = few and len(words) * 2 > len(self._distinct)
        low = wilson(cases - kinds["nowhere"], cases)[0]
        found = Argument(
            tool,
            name,
            cases,
            kinds["user"],
            kinds["host"],
            kinds["record"],
            kinds["text"],
            kinds["nowhere"],
            vocabulary,
            round(low, 2),
            ids=is_id(name) or sum(map(is_identifier, self._distinct)) * 2 > len(self._distinct),
            from_text=self._text.items(),
        )
        first = self._nowhere.items()
        return replace(found, strange=first) if found.usual else replace(found, left_out=first)
