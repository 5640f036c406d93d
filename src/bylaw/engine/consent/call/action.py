"""A call as consent looks at it: the words for what it does, what it does it to, and all that matters in it."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from bylaw.engine.consent.call.deed import deeds, loose_deeds, objects, other_words
from bylaw.engine.consent.call.detail import Detail, details
from bylaw.engine.consent.once import once
from bylaw.engine.consent.said.utterance import Utterance
from bylaw.facts.call_record import CallRecord
from bylaw.facts.folded_text import fold_name
from bylaw.policy.verb import words_of

_DOING = ("action", "operation", "command")
"""Arguments that say what is done."""
_SHORT = 40


class Action:
    """One call; each of these is found once, where anybody asks."""

    def __init__(self, call: CallRecord) -> None:
        self.call = call
        self.tool = call.call.tool
        others = other_words(call.tool.also_called, call.tool.description) if call.tool is not None else ()
        others += _deeds_given(call.call.arguments)
        self.deed = deeds(self.tool, others)
        """Words for what its tool does."""
        self.told = loose_deeds(self.tool, others)
        """The same and others, in which an agent may tell of it."""
        self.matters = details(call.tool, call.call.arguments)
        """What matters in its arguments."""
        self.goals = [detail for detail in self.matters if detail.is_target]
        """Of what matters, the ids of what it acts on, and for whom."""

    @once
    def targets(self) -> frozenset[str]:
        """What it acts on; not for whom, who may have many things done."""
        return frozenset(str(detail.value) for detail in self.goals if not detail.is_person)

    @once
    def is_new(self) -> bool:
        """Whether it makes a thing: what it lists was in no list before."""
        return "creat" in self.deed.stems

    @once
    def has_goals_alone(self) -> bool:
        """Whether nothing but what it acts on matters."""
        return len(self.goals) == len(self.matters)

    @once
    def core(self) -> frozenset[Detail]:
        """What it does, without how it is paid for."""
        paid = {detail.top for detail in self.matters if detail.kind == "means"}
        return frozenset(detail for detail in self.matters if detail.top not in paid)

    @once
    def given(self) -> frozenset[str]:
        """What it gives, and what else it might have chosen, folded."""
        return frozenset(fold_name(word) for each in self.matters for word in (str(each.value), *each.words))

    @once
    def means(self) -> frozenset[str]:
        """The means of payment it uses."""
        return frozenset(str(detail.value) for detail in self.matters if detail.kind == "means")

    @once
    def things(self) -> tuple[str, ...]:
        """Stems of what only such a tool deals with: a certificate, of `send_certificate`."""
        return _stems((self.tool,), self._goal_names)

    @once
    def _goal_names(self) -> tuple[str, ...]:
        return tuple(detail.name for detail in self.goals)

    def is_named_in(self, said: tuple[Utterance, ...]) -> bool:
        """Whether what it acts on was named: by a word of the tool's name, by an argument's name or its value."""
        others = [each for each in self.matters if not each.is_target and each.kind not in ("means", "amount")]
        if not others and not any(detail.kind == "amount" for detail in self.matters):
            return True
        stems = _stems((self.tool, *(detail.name for detail in others)), self._goal_names)
        if any(stem in each.folded for stem in stems for each in said):
            return True
        values = [each.value for each in self.matters if each.is_target or (each in others and not each.is_off)]
        return any(each.says(value) for value in values for each in said)


def _deeds_given(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Words for what a call does that stand in its arguments: `withdraw`, of `action`."""
    given = (arguments.get(name) for name in _DOING if name in arguments)
    return tuple(
        word for value in given if isinstance(value, str) for word in words_of(value[:_SHORT]) if len(word) > 3
    )


@lru_cache(maxsize=2048)
def _stems(names: tuple[str, ...], goals: tuple[str, ...]) -> tuple[str, ...]:
    """Stems of what tools and arguments are named after, without those of what is acted on."""
    known = {stem for name in goals for stem in objects(name)}
    return tuple(dict.fromkeys(stem for name in names for stem in objects(name) if stem not in known))
