"""Whole conversations held to a pack's rules, many of them: what the rules need is made ready once.

The same breaches as `conduct.breaches`, which is tested to agree, found with less work: the called tool and the shape
of the turn tell most predicates by a look-up, and the texts are searched only when an act comes that could break a
rule. Until then acts only wait, for they can move a rule but not break it; and of those that waited only the ones
count that come after every rule was last brought into a state that no longer depends on what was before.
"""

from collections.abc import Iterator, Sequence

from bylaw.engine.act import Act, Turn, turns
from bylaw.engine.conduct import WAITED, Breach, because, breaches
from bylaw.engine.pack import Pack
from bylaw.engine.rules import Find
from bylaw.facts.ledger import Ledger
from bylaw.rule.automaton import BROKEN
from bylaw.rule.formula import atoms
from bylaw.rule.monitor import Monitor
from bylaw.rule.rulebook import FLAG, rulebook
from bylaw.trace.event import Call, Event

OF_TOOL = frozenset(("tool", "effect", "message"))
"""Ways of predicates that the called tool alone decides."""
OF_SHAPE = frozenset(("turn",))
"""Ways that the number of calls and writes in a turn, and whether it says something, decide."""
OF_STATE = frozenset(("said", "returned"))
"""Ways that search what all acts of a turn have behind them."""
OF_TEXT = frozenset(("pattern",))
"""Ways that search the act's own text."""
MEMO = 4096
"""How many tools are remembered: a log may name any number of unknown ones."""

Waiting = tuple[int, int, Turn]
"""An act that waits: the bits its tool and turn tell, its place in its turn, the turn."""


class Watch:
    """The rules of a pack, ready for many conversations."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        rules = pack.book.rules
        plain = [rule for rule in rules if not rule.for_each]
        self._book = rulebook(plain)
        found = [pack.book.predicates[name] for name in self._book.predicates]
        ways = {predicate.way for predicate in found}
        self._is_quick = (
            len(plain) == len(rules) and not self._book.slow and ways <= OF_TOOL | OF_SHAPE | OF_STATE | OF_TEXT
        )
        """Otherwise a rule asks for facts, meets an unknown or runs once per binding: then the plain way."""
        finds = [(1 << place, each.way, each.find) for place, each in enumerate(found) if each.find is not None]
        self._of_tool = [(bit, find) for bit, way, find in finds if way in OF_TOOL]
        self._of_shape = [(bit, find) for bit, way, find in finds if way in OF_SHAPE]
        self._of_state = [(bit, find) for bit, way, find in finds if way in OF_STATE]
        self._of_text = [(bit, find) for bit, way, find in finds if way in OF_TEXT]
        self._atoms = [atoms(rule.formula) for rule in self._book.rules]
        self._tools: dict[str | None, int] = {}
        self._shapes: dict[tuple[int, int, bool], int] = {}
        self._breaking: dict[int, bool] = {}
        self._settling: dict[int, bool] = {}
        self._ends = self._end_states() if self._is_quick else []
        self._may_end_broken = any(self._ends)

    def breaches(self, events: Sequence[Event], ledger: Ledger | None) -> list[Breach]:
        """Every rule broken in a finished conversation, in the order of its acts."""
        if not self._is_quick:
            return breaches(self._pack, events, ledger)
        found: list[Breach] = []
        waiting: list[Waiting] = []
        states = 0
        tools, shapes, breaking = self._tools, self._shapes, self._breaking
        last = 0
        for turn in turns(events, self._pack.schema.tools):
            shape = turn.shape
            of_shape = shapes.get(shape)
            if of_shape is None:
                of_shape = shapes[shape] = _bits(self._of_shape, turn.act(0))
            for place, (step, event) in enumerate(turn.members):
                tool = event.tool if isinstance(event, Call) else None
                of_tool = tools.get(tool)
                if of_tool is None:
                    of_tool = self._bits_of_tool(turn.act(place))
                bits = of_shape | of_tool
                waiting.append((bits, place, turn))
                last = step
                could = breaking.get(bits)
                if could is None:
                    could = breaking[bits] = self._could_break(bits)
                if could:
                    states = self._follow(states, waiting, found)
                    waiting.clear()
        if self._may_end_broken:
            states = self._follow(states, waiting, found)
            found.extend(self._broken_at_end(states, last))
        return found

    def _follow(self, states: int, waiting: Sequence[Waiting], found: list[Breach]) -> int:
        """Let the acts that waited happen, the last of which could break a rule."""
        read, after = self._book.read, self._book.after
        # The last one is looked at from the state it really meets: what settles must come before it.
        start = max(0, len(waiting) - 2)
        while start > 0 and not self._settles(waiting[start][0]):
            start -= 1
        for index in range(start, len(waiting)):
            bits, place, turn = waiting[index]
            searched = turn.searched
            if searched is None:
                searched = turn.searched = _bits(self._of_state, turn.act(0))
            bits |= searched
            if self._of_text:
                bits |= _bits(self._of_text, turn.act(place))
            states, step = after(read(states, bits))
            if step.flags:
                self._note(step.broken, bits, turn.members[place][0], found)
        return states

    def _note(self, broken: Sequence[int], bits: int, step: int, found: list[Breach]) -> None:
        values: dict[str, bool | None] = {name: bool(bits & bit) for name, bit in self._book.bits.items()}
        found += [Breach(step, self._book.rules[place], "", because(self._atoms[place], values)) for place in broken]

    def _bits_of_tool(self, act: Act) -> int:
        if len(self._tools) >= MEMO:
            self._tools.clear()
        bits = self._tools[act.tool] = _bits(self._of_tool, act)
        return bits

    def _could_break(self, bits: int) -> bool:
        """Whether an act of these bits breaks some rule in some state, whatever the texts say."""
        return any(
            self._book.verdicts[at][place] == BROKEN
            for at in range(len(self._book.names))
            for places in self._places(at, bits)
            for place in places
        )

    def _settles(self, bits: int) -> bool:
        """Whether after an act of these bits every rule is in a state that tells nothing of the acts before it."""
        found = self._settling.get(bits)
        if found is None:
            found = self._settling[bits] = all(
                len({self._book.tables[at][place] & FLAG - 1 for place in places}) == 1
                for at in range(len(self._book.names))
                for places in self._places(at, bits)
            )
        return found

    def _places(self, at: int, bits: int) -> Iterator[list[int]]:
        """Where one rule's table is read for an act of these bits: per way the texts may be, for every state."""
        book = self._book
        words = [bits]
        for bit, _ in (*self._of_state, *self._of_text):
            words += [word | bit for word in words]
        for word in words:
            letter = book.read(0, word) >> 8 * at & FLAG - 1
            yield [state + letter for state in range(0, len(book.tables[at]), 1 << len(book.names[at]))]

    def _end_states(self) -> list[frozenset[int]]:
        """Per rule the states in which the end of a conversation breaks it, as its table names them."""
        found: list[frozenset[int]] = []
        for at, names in enumerate(self._book.names):
            broken: set[int] = set()
            for state in range(len(self._book.verdicts[at]) >> len(names)):
                monitor = Monitor(self._book.rules[self._book.quick[at]])
                monitor.place([state])
                if monitor.finish().broke:
                    broken.add(state << len(names))
            found.append(frozenset(broken))
        return found

    def _broken_at_end(self, states: int, last: int) -> list[Breach]:
        return [
            Breach(last, self._book.rules[place], "", WAITED)
            for place, at in sorted((place, at) for at, place in enumerate(self._book.quick))
            if states >> 8 * at & FLAG - 1 in self._ends[at]
        ]


def _bits(pairs: Sequence[tuple[int, Find]], act: Act) -> int:
    return sum(bit for bit, find in pairs if find(act))
