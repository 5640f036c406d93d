"""The predicates in a pack's `rules.yaml`.

A predicate is a condition on an act (a call or message). Its value comes from a single source.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, cast, get_args

from msgspec import Struct
from msgspec.structs import replace

from bylaw.consent import Basis, CardWords, ConsentWitness, Terms
from bylaw.consent.card import CALL, label_of, title_of
from bylaw.errors import BylawError, GuardError, meant
from bylaw.facts.call_record import CallRecord
from bylaw.facts.ledger import Ledger
from bylaw.facts.schema import Schema
from bylaw.guard import Condition, Vocabulary, compile_condition
from bylaw.policy.pattern import PatternError, any_of, compile_pattern, is_cut
from bylaw.policy.statement import Policy
from bylaw.policy.tool import Effect
from bylaw.policy.yaml import Located, Scalar
from bylaw.rule.detectors import DETECTORS
from bylaw.rule.monitor import Act
from bylaw.trace.event import Event, Message, Result

WAYS = (
    *("tool", "effect", "message", "turn", "pattern", "said", "returned", "consented", "code", "detector", "guard"),
    "question",
)

DEAR = ("code", "guard", "consented")
"""Sources that are slower than a text search. They are evaluated last, in this order."""
_BEFORE = ("said", "returned", "question")
"""Sources that depend on events before the act."""
_OF_ACT = re.compile(r"\bact\b(?!\.(?:said|returned|asked)\b)")
"""Matches code that reads the act itself, not only earlier events."""
_MAY_SETTLE = "may settle"
_NEVER = "never"
LONGEST_CARD = 7 * 24 * 3600.0
"""The maximum lifetime of a card, in seconds."""
_BESIDE = {
    "tool": ("when",),
    "question": ("by",),
    "consented": ("need_not_be_told", "must_be_told", "lifetime", "model", "card"),
    **dict.fromkeys(("pattern", "said", "returned"), ("but_not",)),
}
"""The keys that each source allows in addition to the description."""

Speaker = Literal["user", "agent", "tool"]
SPEAKERS: tuple[Speaker, ...] = get_args(Speaker)

Find = Callable[[Act], bool | None]

TURNS: dict[str, Find] = {
    "several_calls": lambda act: act.calls_in_turn > 1,
    "several_writes": lambda act: act.writes_in_turn > 1,
    "with_text": lambda act: act.text_in_turn,
    "without_call": lambda act: act.without_call,
}
"""Predicates about the current turn, up to the act. The value of `without_call` is known only at the end of the turn.
"""


class WrittenPattern(Struct, frozen=True, forbid_unknown_fields=True):
    """A pattern, with another pattern that rules out a match."""

    pattern: Scalar = ""
    but_not: Scalar = ""


WrittenPatterns = Scalar | list[Scalar | WrittenPattern] | None


class WrittenCard(Struct, frozen=True, forbid_unknown_fields=True):
    """The wording of a card in the language of the pack, and the number of seconds for which the card is valid."""

    heading: Scalar = ""
    question: Scalar = ""
    yes: list[Scalar] = []
    no: list[Scalar] = []
    asks: list[Scalar] | None = None
    decimal: Scalar = "."
    lifetime: int | float | None = None


class WrittenPredicate(Struct, frozen=True, forbid_unknown_fields=True):
    """A predicate in rules.yaml: one of the sources in `WAYS`, the keys of this source, and a description."""

    description: Scalar = ""
    tool: Scalar | list[Scalar] | None = None
    when: Scalar | None = None
    effect: Effect | None = None
    message: Scalar | None = None
    turn: Literal["several_calls", "several_writes", "with_text", "without_call"] | None = None
    pattern: WrittenPatterns = None
    said: WrittenPatterns = None
    returned: WrittenPatterns = None
    but_not: Scalar | None = None
    consented: Basis | None = None
    need_not_be_told: list[Scalar] | None = None
    must_be_told: list[Scalar] | None = None
    lifetime: int | float | None = None
    model: Scalar | None = None
    card: WrittenCard | None = None
    code: Scalar | None = None
    detector: Scalar | None = None
    guard: Scalar | None = None
    question: Scalar | None = None
    by: Speaker | list[Speaker] | None = None


class Witness(Protocol):
    """Follows the events of a conversation to determine a predicate's value."""

    def observe(self, step: int, event: Event) -> None:
        """Process the next event. Call `ask` for this event first."""
        ...

    def ask(self, act: Act, record: CallRecord) -> bool | None:
        """Return the predicate's value for the next act, or None if it is unknown. Must not change the witness."""
        ...

    def tell(self, act: Act, record: CallRecord) -> Mapping[str, Any] | None:
        """Return the reason for the predicate's value, as data for `engine.wording`.

        Return None if there is no reason.
        """
        ...


class RuleError(BylawError):
    """Raised if a predicate or rule in a pack is invalid."""

    code = "BY303"


class Predicate(Struct, frozen=True):
    """A condition on an act (a call or message), and the source of the condition's value."""

    name: str
    description: str
    way: str
    """The source of the value: one of `WAYS`, or empty if there is none."""
    find: Find | None = None
    """The function that computes the value from the act alone, or None if the value has another source."""
    code: Condition | None = None
    """The condition that computes the value from facts, or None if the value has another source."""
    guard: str = ""
    """The policy whose guard determines the value: true if the guard denies the call."""
    witness: Callable[[Ledger], Witness] | None = None
    """Creates a conversation's witness, which determines the value from events. None if the act or facts determine it.
    """
    question: str = ""
    """The question to put to a model or reviewer, if only they can determine the value."""
    by: tuple[Speaker, ...] = SPEAKERS
    """The speakers whose text may be used to answer the question."""
    is_about_act: bool = True
    """Whether the predicate is about the act itself, not about earlier events."""
    consent: str = ""
    """For `consented`: the required kind of consent, which is `card`, `told` or `requested`."""
    terms: Terms = Terms()
    """For `consented`: the arguments that the user must have been shown."""
    words: CardWords = CardWords()
    """For `consented`: the wording of cards and questions."""
    model_settles: bool = False
    """Whether a model's answer is accepted as the user's consent, even during a live conversation."""
    says_of_model: bool = False
    """Whether the pack sets `model_settles` explicitly. Packs from before version 0.2 do not."""

    @property
    def is_action(self) -> bool:
        """Whether the predicate names an action.

        In that case, `FOR EACH` applies only to bindings that the call names.
        """
        return self.way in ("tool", "effect")

    @property
    def price(self) -> int:
        """The position in the order of evaluation. Text searches come first, because they are fast."""
        if self.way == "question":
            return len(DEAR) + 1
        return DEAR.index(self.way) + 1 if self.way in DEAR else 0

    @property
    def text(self) -> str:
        """The predicate in words, which is used for embeddings."""
        return f"{self.name.replace('_', ' ')} {self.description}"

    def names(self, tool: str, effect: str) -> bool:
        """Whether the predicate applies to calls of a tool.

        It names the tool or its effect, or applies to any call.
        """
        if self.code is not None:
            return any(f"{quote}{tool}{quote}" in self.code.text for quote in "\"'")
        if self.find is None or self.way not in ("tool", "effect", "message"):
            return False
        return bool(self.find(act_of(tool, effect)))

    def fixed(self, act: Act, guarded: Collection[str] = ()) -> bool | None:
        """Return the predicate's value if the tool and its effect determine it, otherwise None.

        `guarded` contains the tools that the predicate's guard checks.
        """
        is_call = act.tool is not None
        match self.way:
            case "tool" | "effect" | "message" if self.find is not None:
                return bool(self.find(act))
            case "tool":
                return None if is_call and self.names(str(act.tool), act.effect) else False
            case "pattern" | "detector" if self.find is not None and is_call:
                return self.find(act)
            case "turn" if self.find is TURNS["without_call"] and is_call:
                return False
            case "consented" if act.effect not in ("write", "unknown"):
                return False
            case "guard" if guarded and act.tool not in guarded:
                return False
            case _:
                return None

    def unmade(self, act: Act) -> bool:
        """Return the value that the predicate would have if the call were not made."""
        if self.way != "turn" or self.find is None:
            return False
        fewer = act.writes_in_turn - (act.effect == "write")
        return bool(self.find(replace(act, calls_in_turn=act.calls_in_turn - 1, writes_in_turn=fewer)))


def act_of(tool: str | None, effect: str = "") -> Act:
    """Return an act without text or arguments. It is a call to `tool`, or a message if `tool` is None."""
    return Act(0, tool, {}, "", (), (), 1, 1, False, effect)


class PredicateReader:
    """Compiles the predicates in `rules.yaml` and adds their errors to `faults`."""

    def __init__(
        self,
        source: Located,
        schema: Schema,
        policies: Mapping[str, Policy],
        faults: list[BylawError],
        given: Mapping[str, Any],
    ) -> None:
        self._source = source
        self._given = given
        """The predicates as written, including invalid ones."""
        self._schema = schema
        self._policies = policies
        self.faults = faults
        self._spared: dict[frozenset[str], str] = {}
        """The arguments under `need_not_be_told`, each with the predicate that lists it."""

    def read(self, name: str, body: WrittenPredicate) -> Predicate:
        """Compile a predicate. The result is valid only if `faults` is still empty."""
        at = ("predicates", name)
        given = {key for key in body.__struct_fields__ if getattr(body, key) is not None} - {"description"}
        ways = [way for way in WAYS if way in given]
        description = str(body.description)
        if len(ways) != 1:
            if not ways and self._source.data["predicates"].get(name) != self._given.get(name):
                return Predicate(name, description, "")  # the invalid source has been reported
            hint = f"use one of {', '.join(WAYS)}"
            self._fault(f"predicate `{name}` has {len(ways)} sources for its value", *at, hint=hint)
            return Predicate(name, description, "")
        way = ways[0]
        beside = _BESIDE.get(way, ())
        for key in sorted(given - {way, *beside}):
            hint = f"allowed keys: {', '.join(sorted(('description', *beside)))}"
            self._fault(f"`{key}` is not allowed next to `{way}`", *at, key, hint=hint)
        value: Any = getattr(body, way)
        match way:
            case "tool":
                tools = frozenset(map(str, cast(list[Any], value) if isinstance(value, list) else [value]))
                for tool in sorted(tools - self._schema.tools.keys()):
                    hint, lacks = meant(tool, self._schema.tools), f"tool {tool}"
                    self._fault(f"`{tool}` is not a tool", *at, hint=hint, lacks=lacks)
                if body.when is not None:
                    called = " or ".join(f"act.tool == {tool!r}" for tool in sorted(tools))
                    code = self._code(name, description, f"({called}) and ({body.when})", at)
                    # `FOR EACH` must know whether the predicate is about the binding that the call itself names.
                    return replace(code, way=way, is_about_act=True)
                return Predicate(name, description, way, lambda act: act.tool in tools)
            case "effect":
                return Predicate(name, description, way, lambda act: act.effect == value)
            case "message":
                wanted = bool(value)
                return Predicate(name, description, way, lambda act: (act.tool is None) is wanted)
            case "turn":
                return Predicate(name, description, way, TURNS[value])
            case "pattern" | "said" | "returned":
                find = self._search(way, value, str(body.but_not or ""), at)
                return Predicate(name, description, way, find, is_about_act=way not in _BEFORE)
            case "consented":
                return self._consented(name, description, value, body, at)
            case "code":
                return self._code(name, description, str(value), at)
            case "detector":
                found = DETECTORS.get(str(value))
                if found is None:
                    self._fault(f"`{value}` is not a detector", *at, hint=f"built in: {', '.join(DETECTORS)}")
                return Predicate(name, description, way, found)
            case "guard":
                if value not in self._policies:
                    hint, lacks = meant(str(value), self._policies), f"policy {value}"
                    self._fault(f"`{value}` is not a policy", *at, hint=hint, lacks=lacks)
                return Predicate(name, description, way, guard=str(value))
            case _:
                about_act = way not in _BEFORE
                return Predicate(
                    name, description, way, question=str(value), by=self._by(body, at), is_about_act=about_act
                )

    def _by(self, body: WrittenPredicate, at: tuple[str, ...]) -> tuple[Speaker, ...]:
        if body.by is None:
            return SPEAKERS
        named = body.by if isinstance(body.by, list) else [body.by]
        if not named:
            self._fault("`by` is empty", *at, "by", hint=f"known: {', '.join(SPEAKERS)}")
        return tuple(each for each in SPEAKERS if each in named)

    def _consented(
        self, name: str, description: str, basis: Basis, body: WrittenPredicate, at: tuple[str, ...]
    ) -> Predicate:
        spared, wanted = frozenset(map(str, body.need_not_be_told or ())), frozenset(map(str, body.must_be_told or ()))
        if body.model not in (None, _NEVER) and (body.model != _MAY_SETTLE or basis == "card"):
            hint = (
                f"`model: {_MAY_SETTLE}` is allowed with `told` and `requested`, and `model: {_NEVER}` with every "
                "kind of consent. With `card`, only the answer to a card counts"
            )
            self._fault(f"`model` cannot be `{body.model}` with `consented: {basis}`", *at, hint=hint)
        known = set(self._schema.arguments(tuple(self._schema.tools)))
        for each in sorted((spared | wanted) - known) if known else ():
            self._fault(f"`{each}` is not an argument of any tool", *at)
        for each in sorted(spared & wanted):
            self._fault(f"`{each}` is in both `must_be_told` and `need_not_be_told`", *at)
        self._spared.setdefault(spared, name)
        if (first := next(iter(self._spared.values()))) != self._spared[spared]:
            hint = "a card serves all predicates of a pack, so they must leave out the same arguments"
            self._fault(f"`need_not_be_told` differs from the list of `{first}`", *at, hint=hint)
        for one, other in self._alike_on_a_card():
            hint = "give one of them another `title` in tools.yaml"
            message = f"the cards of `{other}` and `{one}` look the same, so a yes would be ambiguous"
            self._fault(message, *at, hint=hint)
        for tool, label in self._labels_twice(spared):
            hint = "give one of them another `title` in tools.yaml"
            self._fault(f"the card of `{tool}` has two values called `{label}`", *at, hint=hint)
        lifetime = Terms().lifetime if body.lifetime is None else float(body.lifetime)
        if not 0 < lifetime < float("inf"):
            hint = "use a number of seconds above 0"
            self._fault(f"`lifetime` of a yes cannot be `{body.lifetime}`", *at, "lifetime", hint=hint)
        terms, words = Terms(spared, wanted, lifetime), self._card_words(body.card or WrittenCard(), at)
        return Predicate(
            name,
            description,
            "consented",
            witness=lambda ledger: ConsentWitness(ledger, basis, terms, words),
            by=("user", "agent"),
            consent=basis,
            terms=terms,
            words=words,
            model_settles=body.model == _MAY_SETTLE,
            says_of_model=body.model is not None,
        )

    def _alike_on_a_card(self) -> Iterator[tuple[str, str]]:
        """Yield write tools that have the title and arguments of another tool, so that their cards look alike."""
        seen: dict[tuple[str, frozenset[str]], str] = {}
        for name, tool in self._schema.tools.items():
            if tool.effect == "write":
                labels = frozenset(label_of(key, schema) for key, schema in tool.parameters.items())
                one = seen.setdefault((title_of(tool, name).lower(), labels), name)
                if one != name:
                    yield one, name

    def _labels_twice(self, spared: frozenset[str]) -> Iterator[tuple[str, str]]:
        """Yield write tools whose card shows two values with the same label."""
        for name, tool in self._schema.tools.items():
            shown = {fact.name: fact.schema for fact in self._schema.card_facts.get(name, ())}
            given = {key: schema for key, schema in tool.parameters.items() if key not in spared}
            labels = [label_of(key, schema).lower() for key, schema in [*given.items(), *shown.items()]]
            if tool.effect == "write" and len(set(labels)) < len(labels):
                yield name, next(each for each in labels if labels.count(each) > 1)

    def _card_words(self, body: WrittenCard, at: tuple[str, ...]) -> CardWords:
        usual = CardWords()
        heading, question = (" ".join(str(each).split()) for each in (body.heading, body.question))
        lifetime = usual.lifetime if body.lifetime is None else float(body.lifetime)
        if not 0 < lifetime <= LONGEST_CARD:
            hint = f"use a number of seconds above 0, up to {LONGEST_CARD:.0f}"
            self._fault(f"`lifetime` of a card cannot be `{body.lifetime}`", *at, "card", "lifetime", hint=hint)
        yes, no = tuple(map(str, body.yes)), tuple(map(str, body.no))
        for each in sorted({word.lower() for word in yes} & {word.lower() for word in no}):
            self._fault(f"`{each}` means both yes and no", *at, "card")
        asks = usual.asks if body.asks is None else tuple(" ".join(str(each).split()) for each in body.asks)
        for each in asks:
            if each.count(CALL) != 1 or any(brace in each.replace(CALL, "") for brace in "{}"):
                hint = f"write a question with `{CALL}` once, in place of the tool's `put_as`, and without other braces"
                self._fault(f"`asks` cannot be `{each}`", *at, "card", "asks", hint=hint)
        if body.decimal not in (".", ","):
            hint = 'use "." or ","'
            self._fault(f"`decimal` cannot be `{body.decimal}`", *at, "card", "decimal", hint=hint)
        told = (heading or usual.heading, question or usual.question, yes, no, lifetime, asks)
        return CardWords(*told, decimal=str(body.decimal))

    def _search(
        self, way: str, value: Scalar | list[Scalar | WrittenPattern], but_not: str, at: tuple[str, ...]
    ) -> Find | None:
        """Return a function that searches texts for the patterns. It ignores a text in which `but_not` also matches."""
        entries = value if isinstance(value, list) else [value]
        records = [each if isinstance(each, WrittenPattern) else WrittenPattern(each) for each in entries]
        if not all(each.pattern for each in records):
            self._fault(f"`{at[-1]}` has an entry without a `pattern`", *at)
            return None
        try:
            patterns = [compile_pattern(str(each.pattern), str(each.but_not)) for each in records]
            occurs = any_of(patterns, [str(each.pattern) for each in records])
            never = compile_pattern(but_not) if but_not else None
        except PatternError as error:
            self.faults.append(self._source.fault(PatternError, error.message, *at, hint=error.hint))
            return None

        may_not = never is not None or any(each.but_not for each in records)

        def found(text: str) -> bool | None:
            # The part that was not searched may contain a match, or text that rules out a match.
            if never is not None and never.occurs(text):
                return False
            if occurs(text):
                return None if may_not and is_cut(text) else True
            return None if is_cut(text) else False

        match way:
            case "said":
                return lambda act: _found(found, [message.text for message in act.sayings], act.sayings)
            case "returned":
                return lambda act: _found(found, act.returns(), act.results)
            case _:
                return lambda act: found(act.text) if act.captured else None

    def _code(self, name: str, description: str, text: str, at: tuple[str, ...]) -> Predicate:
        schema = self._schema
        arguments, tools = schema.arguments(tuple(schema.tools)), frozenset(schema.tools)
        vocabulary = Vocabulary(schema.entities, arguments, tools, schema.declared(), zone=schema.zone)
        file, _, line = self._source.place(*at).rpartition(":")
        try:
            code = compile_condition(text, parameters=("act",), vocabulary=vocabulary, file=file, line=int(line))
        except GuardError as error:
            self.faults.append(error)
            return Predicate(name, description, "code")
        return Predicate(name, description, "code", code=code, is_about_act=_OF_ACT.search(text) is not None)

    def _fault(self, message: str, *at: str | int, hint: str = "", lacks: str = "") -> None:
        self.faults.append(self._source.fault(RuleError, message, *at, hint=hint, lacks=lacks))


def _found(
    matches: Callable[[str], bool | None], texts: Sequence[str], sources: Sequence[Message | Result]
) -> bool | None:
    """Whether any text matches. Return None if no text matches but some text is missing or incomplete."""
    told = {matches(text) for text in texts if text}
    if True in told:
        return True
    return False if None not in told and all(source.captured for source in sources) else None
