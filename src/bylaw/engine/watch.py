"""Whole conversations held to a pack's rules, many of them: what the rules need is made ready once.

The same breaches as `conduct.breaches`, which is tested to agree, found with less work. The called tool and the shape
of the turn tell most predicates by a look-up. What texts would tell is left open at first: each rule is then in one of
a few states. Only where an act could break a rule in one of them are texts searched, for that rule alone, and only
from the last act on after which the rule's state does not depend on what was before.
"""

from collections.abc import Sequence

from bylaw.engine.act import Turn, says_something, turns
from bylaw.engine.conduct import WAITED, Breach, because, breaches
from bylaw.engine.pack import Pack
from bylaw.engine.rules import Find
from bylaw.facts.ledger import Ledger
from bylaw.rule.automaton import BROKEN
from bylaw.rule.formula import atoms
from bylaw.rule.monitor import Monitor
from bylaw.rule.rule import Rule
from bylaw.rule.rulebook import FLAG, Rulebook, rulebook
from bylaw.trace.event import Call, Event, Message

OF_TOOL = frozenset(("tool", "effect", "message"))
"""Ways of predicates that the called tool alone decides."""
OF_SHAPE = frozenset(("turn",))
"""Ways that the number of calls and writes in a turn, and whether it says something, decide."""
OF_STATE = frozenset(("said", "returned"))
"""Ways that search what all acts of a turn have behind them."""
OF_TEXT = frozenset(("pattern",))
"""Ways that search the act's own text."""
MEMO = 4096
"""How many kinds of turns, and of states of all rules, are remembered before they are forgotten together."""

States = frozenset[int]
Happened = tuple[int, int, Turn]
"""An act: the bits its tool and turn tell, its step, its turn."""


class Watch:
    """The rules of a pack, ready for many conversations."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        rules = pack.book.rules
        plain = [rule for rule in rules if not rule.for_each]
        book = rulebook(plain)
        found = [pack.book.predicates[name] for name in book.predicates]
        ways = {predicate.way for predicate in found}
        self._is_quick = len(plain) == len(rules) and not book.slow and ways <= OF_TOOL | OF_SHAPE | OF_STATE | OF_TEXT
        """Otherwise a rule asks for facts, meets an unknown or runs once per binding: then the plain way."""
        finds = [(1 << place, each.way, each.find) for place, each in enumerate(found) if each.find is not None]
        self._of_tool_and_shape = [(bit, find) for bit, way, find in finds if way in OF_TOOL | OF_SHAPE]
        texts = [(bit, find, way in OF_STATE) for bit, way, find in finds if way in OF_STATE | OF_TEXT]
        self._rules = [_Followed(book, at, texts) for at in range(len(book.names))] if self._is_quick else []
        self._rules.sort(key=lambda followed: followed.place)
        self._turns: dict[tuple[str | bool, ...], tuple[int, ...]] = {}
        """The bits of each act of a turn, by their tools and by whether its messages say something."""
        self._places: dict[tuple[States, ...], _Place] = {}

    def breaches(self, events: Sequence[Event], ledger: Ledger | None) -> list[Breach]:
        """Every rule broken in a finished conversation, in the order of its acts."""
        if not self._is_quick:
            return breaches(self._pack, events, ledger)
        found: list[Breach] = []
        past: list[Happened] = []
        place = self._place(tuple(frozenset((0,)) for _ in self._rules))
        followed = [(0, 0)] * len(self._rules)
        """Per rule, how many acts it has really followed, and the state it is in after them."""
        last = 0
        for turn in turns(events, self._pack.schema.tools):
            last = turn.start - 1
            for bits in self._bits(turn, events):
                last += 1
                past.append((bits, last, turn))
                step = place.after.get(bits)
                if step is None:
                    step = place.after[bits] = self._step(place.states, bits)
                place, touched = step
                for index, why in touched:
                    rule = self._rules[index]
                    if why is None:
                        state, broke = rule.follow(past, *followed[index])
                        followed[index] = (len(past), state)
                        place = self._place((*place.states[:index], frozenset((state,)), *place.states[index + 1 :]))
                        why = rule.why(past[-1]) if broke else None
                    if why is not None:
                        found.append(Breach(last, rule.rule, "", why))
        for rule, possible, (done, state) in zip(self._rules, place.states, followed, strict=True):
            if possible & rule.ends and rule.follow(past, done, state)[0] in rule.ends:
                found.append(Breach(last, rule.rule, "", WAITED))
        return found

    def _place(self, states: tuple[States, ...]) -> "_Place":
        found = self._places.get(states)
        if found is None:
            if len(self._places) >= MEMO:
                self._places.clear()
            found = self._places[states] = _Place(states)
        return found

    def _step(self, states: tuple[States, ...], bits: int) -> "Step":
        """Where an act of these bits leads, whatever its texts."""
        moved = [rule.move(possible, bits) for rule, possible in zip(self._rules, states, strict=True)]
        touched = [
            (index, None if rule.reads_texts else rule.told(bits))
            for index, (rule, (_, could_break)) in enumerate(zip(self._rules, moved, strict=True))
            if could_break
        ]
        return self._place(tuple(after for after, _ in moved)), tuple(touched)

    def _bits(self, turn: Turn, events: Sequence[Event]) -> tuple[int, ...]:
        """The bits that tools and the turn tell, act by act."""
        kinds = tuple([_kind(event) for event in events[turn.start : turn.end]])
        found = self._turns.get(kinds)
        if found is None:
            if len(self._turns) >= MEMO:
                self._turns.clear()
            acts = [turn.act(step) for step in range(turn.start, turn.end)]
            told = self._of_tool_and_shape
            found = self._turns[kinds] = tuple(sum(bit for bit, find in told if find(act)) for act in acts)
        return found


class _Place:
    """The states that all rules may be in, and where acts lead from there."""

    __slots__ = ("after", "states")

    def __init__(self, states: tuple[States, ...]) -> None:
        self.states = states
        self.after: dict[int, Step] = {}
        """By an act's bits."""


Step = tuple[_Place, tuple[tuple[int, str | None], ...]]
"""The next place, and the rules that an act breaks, with what to say; None where texts tell whether it does."""


class _Followed:
    """One rule by its table, with the predicates of its own that texts must be searched for."""

    def __init__(self, book: Rulebook, at: int, texts: Sequence[tuple[int, Find, bool]]) -> None:
        self.place = book.quick[at]
        self.rule: Rule = book.rules[self.place]
        self._book = book
        self._at = at
        self._bits = {name: book.bits[name] for name in book.names[at]}
        self._names = atoms(self.rule.formula)
        mine = sum(self._bits.values())
        self._texts = [(bit, find, of_state) for bit, find, of_state in texts if bit & mine]
        self.reads_texts = bool(self._texts)
        """Otherwise tools and turns alone say what state it is in, and whether an act breaks it."""
        self._width = len(book.names[at])
        self._settling: dict[int, bool] = {}
        self.ends = frozenset(
            state << self._width for state in range(len(self._table) >> self._width) if self._ends(state)
        )
        """The states in which the end of a conversation breaks the rule."""

    @property
    def _table(self) -> bytes:
        return self._book.tables[self._at]

    def _ends(self, state: int) -> bool:
        monitor = Monitor(self.rule)
        monitor.place([state])
        return bool(monitor.finish().broke)

    def move(self, states: States, bits: int) -> tuple[States, bool]:
        """The states after an act of these bits, whatever its texts, and whether it could break the rule."""
        places = [state + letter for state in states for letter in self._letters(bits)]
        could_break = any(self._book.verdicts[self._at][place] == BROKEN for place in places)
        return frozenset(self._table[place] & FLAG - 1 for place in places), could_break

    def follow(self, past: Sequence[Happened], done: int, state: int) -> tuple[int, bool]:
        """The state after all that happened, of which `done` acts led to `state`; and whether the last broke it."""
        # The last act is looked at from the state it really meets: what settles that must come before it.
        start = len(past) - 2
        while start > done and not self._settles(past[start][0]):
            start -= 1
        broke = False
        for index in range(max(start, done), len(past)):
            place = state + self._letter(self._known(past[index]))
            broke = self._book.verdicts[self._at][place] == BROKEN
            state = self._table[place] & FLAG - 1
        return state, broke

    def why(self, happened: Happened) -> str:
        """The values of its predicates at an act, in words."""
        return self.told(self._known(happened))

    def told(self, bits: int) -> str:
        """The same, for an act of these bits."""
        return because(self._names, {name: bool(bits & bit) for name, bit in self._bits.items()})

    def _known(self, happened: Happened) -> int:
        """The bits of an act with those that its texts tell, as far as this rule asks for them."""
        bits, step, turn = happened
        for bit, find, of_state in self._texts:
            # What the user said and tools returned is the same for all acts of a turn.
            question = (bit, turn.start if of_state else step)
            answer = turn.searched.get(question)
            if answer is None:
                answer = turn.searched[question] = bool(find(turn.act(step)))
            if answer:
                bits |= bit
        return bits

    def _settles(self, bits: int) -> bool:
        """Whether after an act of these bits the rule is in a state that tells nothing of the acts before it."""
        found = self._settling.get(bits)
        if found is None:
            states = range(0, len(self._table), 1 << self._width)
            found = self._settling[bits] = all(
                len({self._table[state + letter] & FLAG - 1 for state in states}) == 1 for letter in self._letters(bits)
            )
        return found

    def _letters(self, bits: int) -> list[int]:
        """The places of an act's bits among those of this rule, for every way its texts may be."""
        words = [bits]
        for bit, _, _ in self._texts:
            words += [word | bit for word in words]
        return [self._letter(word) for word in words]

    def _letter(self, bits: int) -> int:
        return self._book.read(0, bits) >> 8 * self._at & FLAG - 1


def _kind(event: Event) -> str | bool:
    """What of an act tells its bits within its turn."""
    return event.tool if isinstance(event, Call) else isinstance(event, Message) and says_something(event)
