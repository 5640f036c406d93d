"""The rules of a pack made ready, once for all conversations."""

from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Any

from bylaw.pack.rules import TURNS, Predicate, Rules
from bylaw.policy.tool import Tool
from bylaw.rule.act import Act
from bylaw.rule.circuit import Assessment, Circuit
from bylaw.rule.formula import atoms
from bylaw.rule.inference import Inference
from bylaw.rule.monitors import rulebook
from bylaw.rule.table import table_of

TOLD = frozenset(("tool", "effect", "message", "turn"))
"""Ways of predicates that the called tool and the turn so far decide."""
THE_CALL = "the call"
"""Under this name a circuit of all rules speaks of the call that is being weighed."""
MEMO = 4096
"""How many kinds of acts are remembered before they are forgotten together."""

_SEVERAL = (TURNS["several_calls"], TURNS["several_writes"])


class ReadyRules:
    """The rules of a pack made ready, once for all conversations."""

    def __init__(self, rules: Rules, tools: Mapping[str, Tool]) -> None:
        self.tools = tools
        self.predicates = rules.predicates
        self.book = rulebook(rule for rule in rules.rules if not rule.for_each)
        self.families = [rule for rule in rules.rules if rule.for_each]
        self.actions = frozenset(rules.actions)
        self.names = {rule.name: atoms(rule.formula) for rule in rules.rules}
        named = {name for names in self.names.values() for name in names}
        used = [rules.predicates[name] for name in self.book.predicates]
        self.told = [(1 << place, each) for place, each in enumerate(used) if each.way in TOLD and not _asks(each)]
        self.untold = self.book.everything & ~sum(bit for bit, _ in self.told)
        rest = [(1 << place, each) for place, each in enumerate(used) if self.untold >> place & 1]
        self.asked = sorted(rest, key=lambda each: each[1].price)
        """What is asked for only where it matters, cheap ones first."""
        self.has_waiting = any(rules.predicates[name].find is TURNS["without_call"] for name in named)
        """Whether some rule asks if a turn is without a call, which only its end tells."""
        self.knowledge = {rule.name: table_of(rule.formula) for rule in rules.knowledge}
        self.weighed = named.union(*(table.atoms for table in self.knowledge.values()))
        """The predicates that a circuit of all rules asks for."""
        several = {name for name in named if rules.predicates[name].find in _SEVERAL}
        self.shaped = frozenset(rule for rule, names in self.names.items() if several.intersection(names))
        """The rules that ask how many calls a turn makes."""
        self.weighings: dict[Hashable, Assessment] = {}
        """What was said of calls alike, by all that it hangs on."""
        self._bits: dict[tuple[Any, ...], int] = {}
        self._all, self._eps = rules.every, rules.eps

    @cached_property
    def circuit(self) -> Inference:
        """All rules, ready to be weighed against a call. Its action is the call itself."""
        return Inference(Circuit(action=THE_CALL, rules=self._all, eps=self._eps))

    def bits(self, act: Act) -> int:
        """The bits that the tool and the turn so far tell."""
        # What `TOLD` predicates look at; turns are told by whether there is more than one.
        kind = (act.tool, act.effect, act.calls_in_turn > 1, act.writes_in_turn > 1, act.text_in_turn, act.without_call)
        found = self._bits.get(kind)
        if found is None:
            if len(self._bits) >= MEMO:
                self._bits.clear()
            found = self._bits[kind] = sum(bit for bit, each in self.told if each.find is not None and each.find(act))
        return found


def _asks(predicate: Predicate) -> bool:
    return predicate.find is None
