"""Predicates of a pack's `rules.yaml`: booleans over an act, each with one way to its value."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from bylaw.policy.reading import Scalar
from bylaw.policy.statement import Policy
from bylaw.policy.tool import Effect
from bylaw.policy.yaml import Located
from bylaw.rule.detectors import DETECTORS
from bylaw.rule.monitor import Act
from bylaw.trace.event import Event, Message, Result

WAYS = (
    *("tool", "effect", "message", "turn", "pattern", "said", "returned", "consented", "code", "detector", "guard"),
    "question",
)

DEAR = ("code", "guard", "consented")
"""Ways that cost more than a search in a text, asked last and in this order."""
_BEFORE = ("said", "returned", "question")
"""Ways that speak of what came before an act."""
_OF_ACT = re.compile(r"\bact\b(?!\.(?:said|returned|asked)\b)")
"""Code that looks at the act itself."""
_MAY_SETTLE = "may settle"
_NEVER = "never"
LONGEST_CARD = 7 * 24 * 3600.0
"""Seconds for which a card may be good at most."""
_BESIDE = {
    "tool": ("when",),
    "question": ("by",),
    "consented": ("need_not_be_told", "must_be_told", "lifetime", "model", "card"),
    **dict.fromkeys(("pattern", "said", "returned"), ("but_not",)),
}
"""What may stand beside a way, apart from a description."""

Speaker = Literal["user", "agent", "tool"]
SPEAKERS: tuple[Speaker, ...] = get_args(Speaker)

Find = Callable[[Act], bool | None]

TURNS: dict[str, Find] = {
    "several_calls": lambda act: act.calls_in_turn > 1,
    "several_writes": lambda act: act.writes_in_turn > 1,
    "with_text": lambda act: act.text_in_turn,
    "without_call": lambda act: act.without_call,
}
"""What may be said of the turn an act belongs to, as far as the turn has come; `without_call` is settled at its end."""


class WrittenPattern(Struct, frozen=True, forbid_unknown_fields=True):
    """One of several patterns, with what must not stand beside it."""

    pattern: Scalar = ""
    but_not: Scalar = ""


WrittenPatterns = Scalar | list[Scalar | WrittenPattern] | None


class WrittenCard(Struct, frozen=True, forbid_unknown_fields=True):
    """The words of a card, in the language of the pack, and the seconds for which it is good."""

    heading: Scalar = ""
    question: Scalar = ""
    yes: list[Scalar] = []
    no: list[Scalar] = []
    asks: list[Scalar] | None = None
    decimal: Scalar = "."
    lifetime: int | float | None = None


class WrittenPredicate(Struct, frozen=True, forbid_unknown_fields=True):
    """A predicate in rules.yaml: one of `WAYS`, what may stand beside it, and a description."""

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
    """Finds a predicate's value from the conversation so far, which it takes in event by event."""

    def observe(self, step: int, event: Event) -> None:
        """Take in the next event, after the rules were asked about it."""
        ...

    def ask(self, act: Act, record: CallRecord) -> bool | None:
        """The value at an act about to be observed; None where it cannot be told. It must not move the witness."""
        ...

    def tell(self, act: Act, record: CallRecord) -> Mapping[str, Any] | None:
        """Why it has this value, as data for `engine.wording`; None where there is no more to say."""
        ...


class RuleError(BylawError):
    """A predicate or a rule of a pack does not say what it must."""

    code = "BY303"


class Predicate(Struct, frozen=True):
    """A boolean over an act, and how its value is found."""

    name: str
    description: str
    way: str
    """One of `WAYS`; empty where nothing finds its value."""
    find: Find | None = None
    """Where the act alone tells."""
    code: Condition | None = None
    """Where facts must be asked."""
    guard: str = ""
    """A policy whose guard must be asked: true where it denies."""
    witness: Callable[[Ledger], Witness] | None = None
    """Opens what follows one conversation, where the act and the facts alone do not tell."""
    question: str = ""
    """What to ask, where only a reader can tell."""
    by: tuple[Speaker, ...] = SPEAKERS
    """Whose words a reader may rest the answer on."""
    is_about_act: bool = True
    """Whether it speaks of the act itself; else of what came before, which is so whether or not the act is made."""
    consent: str = ""
    """How sure a `consented` predicate must be: `card`, `told` or `requested`."""
    terms: Terms = Terms()
    """Of a `consented` predicate: which arguments need to be told."""
    words: CardWords = CardWords()
    """Of a `consented` predicate: the words of its cards and questions."""
    model_settles: bool = False
    """Whether the pack lets a model's answer count as the user's consent, live too."""
    says_of_model: bool = False
    """Whether the pack says so or otherwise; packs of before 0.2 do not."""

    @property
    def is_action(self) -> bool:
        """Whether it names an action: `FOR EACH` takes it to hold for what the call names, and for nothing else."""
        return self.way in ("tool", "effect")

    @property
    def price(self) -> int:
        """Predicates are asked in this order: what is searched in a text first."""
        if self.way == "question":
            return len(DEAR) + 1
        return DEAR.index(self.way) + 1 if self.way in DEAR else 0

    @property
    def text(self) -> str:
        """The predicate in words, for embeddings."""
        return f"{self.name.replace('_', ' ')} {self.description}"

    def names(self, tool: str, effect: str) -> bool:
        """Whether it speaks of calls of a tool: by its name, by its effect, or of whatever is called."""
        if self.code is not None:
            return any(f"{quote}{tool}{quote}" in self.code.text for quote in "\"'")
        if self.find is None or self.way not in ("tool", "effect", "message"):
            return False
        return bool(self.find(Act(0, tool, {}, "", (), (), 1, 1, False, effect)))

    def unmade(self, act: Act) -> bool:
        """The value if a call is not made, of a predicate about the act."""
        if self.way != "turn" or self.find is None:
            return False
        fewer = act.writes_in_turn - (act.effect == "write")
        return bool(self.find(replace(act, calls_in_turn=act.calls_in_turn - 1, writes_in_turn=fewer)))


class PredicateReader:
    """Makes predicates of what stands in `rules.yaml`; adds every fault it meets to `faults`."""

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
        """The predicates as written, with the parts that were at fault."""
        self._schema = schema
        self._policies = policies
        self.faults = faults

    def read(self, name: str, body: WrittenPredicate) -> Predicate:
        """A predicate; look at `faults` before using it."""
        at = ("predicates", name)
        given = {key for key in body.__struct_fields__ if getattr(body, key) is not None} - {"description"}
        ways = [way for way in WAYS if way in given]
        description = str(body.description)
        if len(ways) != 1:
            if not ways and self._source.data["predicates"].get(name) != self._given.get(name):
                return Predicate(name, description, "")  # its way was at fault, and has been reported
            hint = f"give one of {', '.join(WAYS)}"
            self._fault(f"predicate `{name}` says in {len(ways)} ways how it gets its value", *at, hint=hint)
            return Predicate(name, description, "")
        way = ways[0]
        beside = _BESIDE.get(way, ())
        for key in sorted(given - {way, *beside}):
            hint = f"known beside `{way}`: {', '.join(sorted(('description', *beside)))}"
            self._fault(f"`{key}` is not known here", *at, key, hint=hint)
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
                    # It stays an action: `FOR EACH` must know that it speaks of the binding the call names.
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
        """The speakers that a question names; all of them where it names none."""
        if body.by is None:
            return SPEAKERS
        named = body.by if isinstance(body.by, list) else [body.by]
        if not named:
            self._fault("`by` names nobody", *at, "by", hint=f"known: {', '.join(SPEAKERS)}")
        return tuple(each for each in SPEAKERS if each in named)

    def _consented(
        self, name: str, description: str, basis: Basis, body: WrittenPredicate, at: tuple[str, ...]
    ) -> Predicate:
        spared, wanted = frozenset(map(str, body.need_not_be_told or ())), frozenset(map(str, body.must_be_told or ()))
        if body.model not in (None, _NEVER) and (body.model != _MAY_SETTLE or basis == "card"):
            hint = (
                f"`model: {_MAY_SETTLE}` may stand beside `told` and `requested`, `model: {_NEVER}` beside any: "
                "with `card` only a card's answer counts"
            )
            self._fault(f"`model` cannot be `{body.model}` beside `consented: {basis}`", *at, hint=hint)
        known = set(self._schema.arguments(tuple(self._schema.tools)))
        for each in sorted((spared | wanted) - known) if known else ():
            self._fault(f"`{each}` is not an argument of any tool", *at)
        for each in sorted(spared & wanted):
            self._fault(f"`{each}` both must and need not be told", *at)
        for one, other in self._alike_on_a_card():
            hint = "give one of them another `title` in tools.yaml"
            message = f"a card for `{other}` reads like one for `{one}`: nobody could tell what a yes is to"
            self._fault(message, *at, hint=hint)
        for tool, label in self._labels_twice(spared):
            hint = "give one of them another `title` in tools.yaml"
            self._fault(f"two values of `{tool}` are called `{label}` on its card", *at, hint=hint)
        lifetime = Terms().lifetime if body.lifetime is None else float(body.lifetime)
        if not 0 < lifetime < float("inf"):
            hint = "seconds, more than 0: how long a yes in words counts"
            self._fault(f"`lifetime` of a yes cannot be `{body.lifetime}`", *at, "lifetime", hint=hint)
        terms, words = Terms(spared, wanted, lifetime), self._card_words(body.card or WrittenCard(), at)
        found = Predicate(
            name, description, "consented", witness=lambda ledger: ConsentWitness(ledger, basis, terms, words)
        )
        settles, says = body.model == _MAY_SETTLE, body.model is not None
        found = replace(found, by=("user", "agent"), consent=basis, terms=terms, words=words)
        return replace(found, model_settles=settles, says_of_model=says)

    def _alike_on_a_card(self) -> Iterator[tuple[str, str]]:
        """Tools that change something, each with another of the same title whose arguments are called the same."""
        seen: dict[tuple[str, frozenset[str]], str] = {}
        for name, tool in self._schema.tools.items():
            if tool.effect == "write":
                labels = frozenset(label_of(key, schema) for key, schema in tool.parameters.items())
                one = seen.setdefault((title_of(tool, name).lower(), labels), name)
                if one != name:
                    yield one, name

    def _labels_twice(self, spared: frozenset[str]) -> Iterator[tuple[str, str]]:
        """Tools that change something, each with a label that two values on its card have."""
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
            hint = f"seconds, more than 0 and {LONGEST_CARD:.0f} at most"
            self._fault(f"`lifetime` of a card cannot be `{body.lifetime}`", *at, "card", "lifetime", hint=hint)
        yes, no = tuple(map(str, body.yes)), tuple(map(str, body.no))
        for each in sorted({word.lower() for word in yes} & {word.lower() for word in no}):
            self._fault(f"`{each}` means both yes and no", *at, "card")
        asks = usual.asks if body.asks is None else tuple(" ".join(str(each).split()) for each in body.asks)
        for each in asks:
            if each.count(CALL) != 1 or any(brace in each.replace(CALL, "") for brace in "{}"):
                hint = f"a question with `{CALL}` once, where what the tool is `put_as` stands, and no other brace"
                self._fault(f"`asks` cannot be `{each}`", *at, "card", "asks", hint=hint)
        if body.decimal not in (".", ","):
            hint = 'the mark before the cents: "." or ","'
            self._fault(f"`decimal` cannot be `{body.decimal}`", *at, "card", "decimal", hint=hint)
        told = (heading or usual.heading, question or usual.question, yes, no, lifetime, asks)
        return CardWords(*told, decimal=str(body.decimal))

    def _search(
        self, way: str, value: Scalar | list[Scalar | WrittenPattern], but_not: str, at: tuple[str, ...]
    ) -> Find | None:
        """Whether a text matches: one of the patterns, and neither its own `but_not` nor that of all."""
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
            self.faults.append(PatternError(error.message, place=self._source.place(*at), hint=error.hint))
            return None

        may_not = never is not None or any(each.but_not for each in records)

        def found(text: str) -> bool | None:
            # What was not searched may hold a match, or what rules one out: then nobody can say.
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
        self.faults.append(RuleError(message, place=self._source.place(*at), hint=hint, lacks=lacks))


def _found(
    matches: Callable[[str], bool | None], texts: Sequence[str], sources: Sequence[Message | Result]
) -> bool | None:
    """Whether any of the texts matches; where none does and one was not recorded or read to its end, nobody can say."""
    told = {matches(text) for text in texts if text}
    if True in told:
        return True
    return False if None not in told and all(source.captured for source in sources) else None
