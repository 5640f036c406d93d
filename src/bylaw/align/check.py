"""Whether a thought, whoever wrote it, is faithful and complete by what the guards found at its turn."""

from msgspec import Struct

from bylaw.align.bearing import Bearing
from bylaw.align.matcher import Matcher
from bylaw.align.stem import values_in
from bylaw.pack import Pack


class Checked(Struct, frozen=True):
    """What a check finds."""

    missing: tuple[str, ...]
    """Policies that the turn needs and the thought does not state."""
    beside: tuple[str, ...]
    """Policies that it states and the turn does not need."""
    made_up: tuple[str, ...]
    """Rules that it states and no policy has."""
    stray: tuple[str, ...]
    """Amounts and days in it that neither a policy nor the conversation has."""

    @property
    def is_faithful(self) -> bool:
        """It states no rule, amount or day that there is not."""
        return not self.made_up and not self.stray

    @property
    def is_complete(self) -> bool:
        """It states every policy that the turn needs."""
        return not self.missing


def check(pack: Pack, thought: str, found: Bearing, reader: Matcher, said: str = "") -> Checked:
    """Check a thought against what bears on its turn. `said` is the conversation, for the values it showed."""
    shown = {value.key for value in values_in(said)}
    mentions = reader.mentions(thought, shown)
    stated = [pack.policies[name] for name in {*found.required, *mentions.recalled}]
    texts = [text for policy in stated for text in (policy.definition, *(each.text or "" for each in policy.citations))]
    known = shown | {value.key for text in texts for value in values_in(text)}
    days = {key[1] for key in known if key[0] == "date"}
    stray = [
        thought[value.start : value.end]
        for value in values_in(thought)
        if value.kind in ("amount", "date") and value.key not in known and not _is_day_of(value.key[1], days)
    ]
    told = set(mentions.recalled)
    inside = " ".join(mentions.made_up)
    return Checked(
        tuple(sorted(found.required - told)),
        tuple(sorted(told - found.required)),
        mentions.made_up,
        tuple(text for text in stray if text not in inside),
    )


def _is_day_of(day: str, days: set[str]) -> bool:
    """Whether a day without its year is one of those with it."""
    return len(day) == 5 and any(each.endswith(day) for each in days)
