"""One message of a conversation, as consent reads it."""

from bylaw.engine.consent.once import once
from bylaw.engine.consent.said.wording import wording
from bylaw.facts.folded_text import fold, occurs, runs_of

_MARKS = "-*`\"'"


class Utterance:
    """One message, folded once where anybody asks."""

    def __init__(self, step: int, by: str, text: str) -> None:
        self.step = step
        self.by = by
        self.text = text
        self._told: dict[str | float, bool] = {}

    @once
    def folded(self) -> str:
        """The text with case and blanks made alike."""
        return fold(self.text)

    @once
    def loose(self) -> str:
        """The same without hyphens and marks of emphasis, for words of a list."""
        text = self.folded
        for mark in _MARKS:
            text = text.replace(mark, " ")
        return " ".join(text.split())

    @once
    def runs(self) -> frozenset[str]:
        """The runs of letters and of digits in it."""
        return frozenset(runs_of(self.folded))

    def says(self, value: str | float) -> bool:
        """Whether it states a value in any usual form."""
        told = self._told.get(value)
        if told is None:
            wanted = wording(value)
            told = wanted.needed in self.text and (
                wanted.stands_in(self.text, self.folded) or (bool(wanted.spoken) and wanted.is_spoken_in(self.loose))
            )
            self._told[value] = told
        return told

    def names(self, form: str) -> bool:
        """Whether folded words stand in it as they are, or with blanks for hyphens."""
        if form in self.folded and occurs(form, self.folded) >= 0:
            return True
        return "-" in form and occurs(form.replace("-", " "), self.loose) >= 0
