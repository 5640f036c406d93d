"""Where a value may come from for a text that the user handed over to, by the words of that text alone."""

from collections import Counter
from collections.abc import Mapping

from bylaw.engine.request.allowance import fetches
from bylaw.engine.request.values import DAY, given_words, telling
from bylaw.facts.provenance import Provenance, Traced
from bylaw.policy.tool import Tool
from bylaw.text.folding import fold, occurs
from bylaw.text.identifier import is_prose

_SHORT = 80


class Noting:
    """Holds what results show against a text that the user handed over to."""

    def __init__(self, provenance: Provenance, tools: Mapping[str, Tool], text: str) -> None:
        """`text` is folded."""
        self._provenance, self._tools, self._text = provenance, tools, text

    def means(self, kind: str, value: str | float, sight: Traced) -> bool:
        """Whether the text means a value that stands somewhere."""
        if sight.source == "record":
            return self._is_noted(sight, is_known=kind != "link" and "@" not in str(value))
        return self._is_called(value, sight) or self._is_posted(kind, sight)

    def _is_noted(self, sight: Traced, *, is_known: bool) -> bool:
        """Whether the text speaks of a record; or of none of those beside it, where one
        that the system knows will do."""
        assert sight.step is not None
        said = telling(self._text)
        places = self._provenance.places(sight.step)
        records = places.records
        if not records and sight.is_whole:
            # Of a list the text means the members that it names, where it names any.
            members = [each for each in places.values(sight.field) if occurs(each, self._text) >= 0]
            return is_known and not members
        # What several records have alike tells none of them apart.
        had = Counter(value for record in records for value in {*record.values()} if not DAY.match(value))
        noted = [
            any(len(value) <= _SHORT and had[value] == 1 and telling(value) & said for value in record.values())
            for record in records
        ]
        return (is_known and not any(noted)) or (sight.number >= 0 and noted[sight.number])

    def _is_called(self, value: str | float, sight: Traced) -> bool:
        """Whether the text calls somebody by name whose address stands alone somewhere."""
        person, at, _ = fold(str(value)).partition("@")
        return sight.is_whole and bool(at) and bool(telling(person.replace(".", " ")) & telling(self._text))

    def _is_posted(self, kind: str, sight: Traced) -> bool:
        """Whether a link or an address stands in the place that the text names."""
        is_page = kind == "link" and fetches(self._tools[sight.tool])
        return kind in ("link", "address") and not is_page and self._is_named(sight)

    def _is_named(self, sight: Traced) -> bool:
        """Whether the text names what stands beside a value, or was asked for, and of no record beside it more."""
        assert sight.step is not None
        places = self._provenance.places(sight.step)
        given = {*given_words(sight.arguments)}

        def noted(number: int) -> int:
            beside = {value for value in places.fields(number).values() if len(value) > 2 and not is_prose(value)}
            return sum(occurs(value, self._text) >= 0 for value in beside | given if not value.isdigit())

        return noted(sight.number) >= max(1, *(noted(each) for each in range(len(places.records))))
