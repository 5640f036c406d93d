"""Words for what a tool does, so that a yes to freezing a thing is no yes to cancelling it; and whether the agent asked
for leave to do just this, as it told it and with nothing beside it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from bylaw.consent.argument import Argument, target_of
from bylaw.consent.line import Line, heads, only_goes_ahead
from bylaw.consent.passage import shape
from bylaw.consent.put import Put
from bylaw.consent.records import Records
from bylaw.consent.talk import Exchange
from bylaw.facts.call_record import CallRecord
from bylaw.policy.tool import Tool
from bylaw.policy.verb import VERBS, words_of
from bylaw.text.sentence import sentences
from bylaw.text.stem import stem

_FAMILIES = (
    "cancel call_off terminat void annul",
    "book reserv schedul purchas order plac buy arrang",
    "updat chang modif edit switch mov upgrad downgrad adjust amend swap correct reschedul rebook replac revis alter "
    "set",
    "chang switch mov updat upgrad downgrad adjust modif swap set",
    "modif chang mov updat adjust switch reschedul rebook upgrad downgrad amend",
    "send issu provid giv grant award",
    "refund reimburs money_back credit pay_back",
    "return send_back tak_back",
    "resum reactivat restart unblock lift restor",
    "pay settl",
    "transfer send mov wire",
    "exchang swap replac",
    "delet remov eras",
    "clos shut end",
    "withdraw drop retract revok unenrol tak_out",
    "drop withdraw unenrol remov tak_out",
    "enrol register sign_up add",
    "renew extend prolong",
    "refill renew reorder",
    "record submit log enter register",
    "submit send record enter file log",
    "file submit open log report mak",
    "waiv forgiv drop tak_off remov",
    "creat open set_up mak add book reserv order rais",
    "block lock",
    "freez paus hold suspend",
    "suspend paus hold freez block bar",
    "redirect rerout forward send divert deliver chang mov",
    "redeem us appl spend",
    "assign giv appoint mov",
    "appl us add put",
    "add includ attach put",
    "issu send giv",
    "releas return pay_back refund",
    "set chang updat switch mov",
    "mov chang switch reschedul push transfer",
    "tak charg collect debit",
    "edit chang updat",
    "schedul book arrang set_up plan",
    "order plac buy purchas",
    "upgrad mov switch chang",
    "request order ask put_in",
    "reset send",
    "activat enabl turn_on switch_on",
    "remov delet tak_off drop",
    "report log record file",
    "open creat set_up",
    "start begin set_up open",
    "stop end",
    "swap exchang switch chang",
    "replac exchang swap send issu",
    "extend prolong renew lengthen",
)
"""Each line: a verb of tools, and stems of the words by which people say the same."""
_GENERIC = frozenset(
    ("update", "set", "make", "create", "submit", "apply", "record", "log", "enter", "register", "file")
)
"""Verbs that say little: what they are done to says which deed it is."""
_NO_VERBS = frozenset(
    ("the", "this", "use", "tool", "call", "for", "when", "only", "allows", "lets", "used", "a", "an")
)
_CARD = re.compile(r"\bend(?:ing|s)(?= (?:in |with )?\d)")
"""No word for a deed: "the card ending in 7002"."""
_PART = re.compile(r"\n|,|;|\band\b|\bthen\b")
_QUOTED = re.compile(r"\"[^\"]*\"|\u201c[^\u201d]*\u201d|\u201e[^\u201c]*\u201c")
"""What somebody else has said, as far as the user tells."""
_GREETED = (
    r"\W*(?:(?:hi|hello|hey|good (?:morning|afternoon|evening)|dear|thanks|thank you|ok|okay|yes|yeah|so|then|and|also|"
    r"now|right|great|sure|there|again|all|please|pls|kindly|just)\b\W*)*"
)
_COURTESY = re.compile(_GREETED)
_WANTS = r"(?:i|we)(?:'d| would)? (?:like|want|need|wish)"
_LEAD = re.compile(
    rf"{_GREETED}(?:(?:(?:can|could|will|would) you|{_WANTS}(?: you)? to|(?:can|could|may) (?:i|we)|{_WANTS} (?=an? )|"
    r"go ahead and|help me(?: to)?|let's)\b\W*)?(?:(?:please|pls|kindly|just|also|now|an?|go ahead and)\b\W*)*"
)
_WANTED = re.compile(rf"{_GREETED}{_WANTS} (?!to\b)[^,;:]*? ([a-z]+(?:ed|en|n))(?:\W+please)?\W*$")
"""How a request begins, before the word for what is asked for; and one that ends with it."""
_BASE = re.compile(r"(?:e|y|al|ation|lation|ment)?(?![\w-])")
"""The endings of a verb as one asks with it, and of the noun after "I'd like a"."""
_ENDING = re.compile(r"(?:e|s|d|es|ed|ing|ings|[a-z]?ing|[a-z]?ed|ation|al|ment|ies|y|r|n|ion|ling|led|lation)?\b")

_MADE = frozenset(("make", "do", "process", "perform", "complete", "carry"))
"""Words for doing what is named after them: "make both transfers"."""
_MANY = 20
_OF = r"[^,;.\n]{0,24}\b(?:of|from|in|on)\b[^,;.\n]{0,24}"
_FOR = r"[^,;.\n]{0,24}\bfor\b[^,;.\n]{0,24}"


class Deed:
    """The words for what one tool does, and those that belong to it alone among the tools beside it."""

    def __init__(self, tool: Tool | None, name: str, beside: frozenset[str], rivals: Sequence[str]) -> None:
        self.name = name
        self.described = frozenset(map(stem, words_of(tool.description))) if tool is not None else frozenset[str]()
        """The words of what the tool says of itself, without their endings."""
        verbs, things = _names(name)
        told = words_of(tool.description)[:1] if tool is not None else []
        verbs += [word for word in told if word not in _NO_VERBS]
        self._main = frozenset(stem for verb in verbs for stem in _family(verb))
        verbs += [word for word in things if VERBS.get(word) == "write" and word not in beside]
        also = tuple(each.lower() for each in tool.also_called) if tool is not None else ()
        self.verbs = frozenset({stem for verb in verbs for stem in _family(verb)} | {_stem(each) for each in also})
        self.own = frozenset(_stem(each) for each in things if each not in beside)
        """Stems of what it is done to, where no other tool is named by it."""
        self._main |= frozenset(_stem(each) for each in also)
        self._is_generic = verb_of(name) in _GENERIC
        mine = set(things)
        shared = {word for each in rivals for word in things_of(each)}
        self._things = frozenset(_stem(each) for each in things if each not in shared)
        self._theirs = frozenset(_stem(word) for each in rivals for word in things_of(each) if word not in mine)
        """Stems of what other tools of the same verb are done to."""

    @lru_cache(maxsize=4096)  # noqa: B019 - deeds live as long as their pack
    def stands_in(self, words: str) -> bool:
        """Whether words in lower case name the deed."""
        words = _CARD.sub(" ", words)
        if not _any(self.verbs, words):
            return self._is_generic and _any(self.own, words)
        if _any(self.own, words):
            return True
        parts = [each for each in _PART.split(words) if _any(self.verbs, each)]
        return any(_any(self._things, each) or not _any(self._theirs, each) for each in parts)

    def is_requested_in(self, words: str) -> bool:
        """Whether the main clause of one sentence asks that it be done: "cancel order 7", "could you cancel it?", and
        not "where is order 7?", "block the transfer" or "summarise this: transfer 50"."""
        told = _QUOTED.sub(" ", words)
        begin = lead.end() if (lead := _LEAD.match(told)) else 0
        return (self._begins(told, begin) or self._ends(told)) and self.stands_in(told)

    def _begins(self, words: str, at: int) -> bool:
        """Whether a word for it, as one asks for it, stands at a place."""
        verbs = self.verbs if self._is_generic else self._main
        return any(words.startswith(each, at) and _BASE.match(words, at + len(each)) for each in verbs)

    def _ends(self, words: str) -> bool:
        """Whether somebody wants something to have it done to it: "I want order 7 cancelled"."""
        wanted = _WANTED.match(words)
        return wanted is not None and self.is_called((wanted[1],))

    def is_asked_in(self, words: str, heads: tuple[str, ...]) -> bool:
        """Whether a sentence that would have something done would have this done."""
        if not heads:
            return self.stands_in(words)
        return self.is_called(heads) or (self._is_generic and _any(self.own, words))

    @lru_cache(maxsize=4096)  # noqa: B019 - the same
    def is_called(self, heads: tuple[str, ...]) -> bool:
        """Whether one of the words for what somebody would do is a word for this."""
        return any(_any(self.verbs, each) or _any(self.own, each) for each in heads)

    def is_done_by(self, verb: str) -> bool:
        """Whether a verb is one for this: to reorder is not to cancel an order."""
        return any(verb.startswith(each) for each in self.verbs if " " not in each)

    def turns_away(self, said: Iterable[tuple[int, str]]) -> bool:
        """Whether the agent said that it would do something else."""
        told = (heads(each.words) for _, text in said for each in sentences(text))
        return any(each and not self.is_called(each) and VERBS.get(each[0]) == "write" for each in told)


def is_courtesy(words: str) -> bool:
    """Whether a sentence in lower case is a greeting, a thank you or a please, and nothing else."""
    return _COURTESY.fullmatch(words) is not None


class Deeds:
    """The deeds of all tools of a pack, each made when somebody asks for it."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._tools = tools
        self._writing = [name for name, tool in tools.items() if tool.effect == "write"]
        self._known: dict[str, Deed] = {}
        self._others: dict[tuple[str, str], list[Deed]] = {}

    def of(self, name: str) -> Deed:
        """What a tool does."""
        found = self._known.get(name)
        if found is None:
            others = [each for each in self._writing if each != name]
            beside = frozenset(word for each in others for word in things_of(each))
            rivals = [each for each in others if verb_of(each) == verb_of(name)]
            found = self._known[name] = Deed(self._tools.get(name), name, beside, rivals)
        return found

    def writing(self, deed: Deed, thing: str = "") -> list[Deed]:
        """The deeds of the other tools that change something and take a thing of a name."""
        found = self._others.get((deed.name, thing))
        if found is None:
            names = [name for name in self._writing if name != deed.name and _takes(self._tools[name], thing)]
            found = self._others[deed.name, thing] = [self.of(name) for name in names]
        return found


def _takes(tool: Tool, thing: str) -> bool:
    return not thing or thing in tool.parameters


def _any(stems: frozenset[str], words: str) -> bool:
    return any(stem in words and _is_word(stem, words) for stem in stems)


def verb_of(name: str) -> str:
    """The verb in a tool's name."""
    return (_names(name)[0] or [""])[0]


def things_of(name: str) -> list[str]:
    """The words of a tool's name beside its verb."""
    return _names(name)[1]


def _names(name: str) -> tuple[list[str], list[str]]:
    words = words_of(name)
    verbs = [word for word in words if VERBS.get(word) == "write"][:1] or words[:1]
    return verbs, [word for word in words if word not in verbs and len(word) > 2]


@lru_cache(maxsize=1024)
def _family(verb: str) -> frozenset[str]:
    stem = _stem(verb)
    lines = [line.split() for line in _FAMILIES]
    lines = [line for line in lines if _is_form(stem, line[0])]
    return frozenset({stem, *(each.replace("_", " ") for line in lines for each in line)})


def _is_form(stem: str, member: str) -> bool:
    return stem.startswith(member) or (len(stem) > 3 and member.startswith(stem))


def _stem(word: str) -> str:
    for ending in ("ies", "es", "s", "e", "y"):
        if len(word) - len(ending) >= 3 and word.endswith(ending):
            return word[: -len(ending)]
    return word


def _is_word(stem: str, words: str) -> bool:
    here = words.find(stem)
    while here >= 0:
        begins = here == 0 or not words[here - 1].isalnum()
        if begins and (len(stem) > 4 or _ENDING.match(words, here + len(stem))):
            return True
        here = words.find(stem, here + 1)
    return False


class Leave:
    """What one message asks leave for, beside a call."""

    def __init__(self, call: CallRecord, given: Sequence[Argument], deeds: Deeds, records: Records) -> None:
        self._call, self._given, self._records = call, given, records
        self._deeds, self._deed = deeds, deeds.of(call.call.tool)
        self._own: set[str] = set()

    def is_asked_in(self, exchanges: Sequence[Exchange]) -> bool:
        """Whether the last of these exchanges asks for it."""
        last = exchanges[-1]
        return self._is_named(exchanges) and self._asks_for(last) and self._is_for_this(last)

    def _is_named(self, exchanges: Sequence[Exchange]) -> bool:
        """Whether the deed was named: by the agent, or by the user where the agent told what it is done with."""
        told, deed = exchanges[-1].stated.words, self._deed
        if deed.stands_in(told):
            return True
        kinds = {each.kind for each in self._given if each.number != 0}
        is_more = not kinds.isdisjoint(("sum", "day", "time", "count", "choice", "name"))
        if not is_more or any(deed.stands_in(each.said_back.words) for each in exchanges):
            return is_more
        return not any(each.stands_in(told) for each in self._deeds.writing(deed, self._thing))

    def _asks_for(self, last: Exchange) -> bool:
        """Whether the question that the yes answers would do this deed; or asks no more than whether to go ahead, where
        what stands right before it is this deed."""
        deed = self._deed
        for line in last.put.for_leave[-1:]:
            if deed.is_asked_in(line.words, line.heads):
                return True
            is_made = bool(line.heads) and _MADE.issuperset(line.heads) and deed.stands_in(line.words)
            if not is_made and not only_goes_ahead(line.words):
                return False
        told = [line for line in last.put.proposed if line.heads]
        return not told or any(deed.is_asked_in(line.words, line.heads) for line in told)

    @property
    def _thing(self) -> str:
        """The name of the argument that says what the call acts on."""
        target = target_of(self._given, self._deed.name)
        return target.name if target is not None and not target.is_person else ""

    def _is_for_this(self, last: Exchange) -> bool:
        """Whether what was asked is leave for this call, and for nothing beside it."""
        put = last.put
        if put.is_no_proposal or (put.after and self._is_told_after(put)):
            return False
        if put.vague and not put.vague.isdisjoint([each.number for each in self._given]):
            return False
        if not all(map(self.is_of_call, put.added)) or self._is_for_a_part(last):
            return False
        if put.unread and any(sum(map(self.is_of_call, words)) < wanted for words, wanted in put.unread):
            return False
        for line in put.put_off:
            is_proposed = line.asks or self._deed.is_called(line.heads)
            if is_proposed and (line.waits or self._is_put_off(line)):
                return False
        return True

    def _is_for_a_part(self, last: Exchange) -> bool:
        """Whether what was asked for has an id that the call has not, and that no record knows: "item L1 of order 7" is
        a part of what a call on the order does."""
        told = ""
        for passage in (last.asked, last.proposed):
            if not passage.ids:
                continue
            told = told or str(self._call.call.arguments).lower()
            others = [code for code in passage.ids if code[0].isalpha() and code not in told]
            given = {each.key for each in self._given if each.kind == "id"} if others else ()
            for code in others[:_MANY]:
                if shape(code) in map(shape, given):
                    continue
                unknown = not self._records.holds(code)
                if unknown and any(_is_part(code, key, passage.words) for key in given):
                    return True
        return False

    def _is_told_after(self, put: Put) -> bool:
        """Whether the deed is told only after a question that does not name it, so that the yes may be to that: "Your
        name is Bob, right? I will transfer 500.00."."""
        is_named = any(self._deed.stands_in(line.words) for line in put.for_leave[-1:])
        return not is_named and any(self._deed.stands_in(line.words) for line in put.after)

    def _is_put_off(self, line: Line) -> bool:
        """Whether a sentence would do something at a time of which the call says nothing, or on a day that no record
        holds: a yes to that is none to doing it now."""
        if any(each.day is not None or each.at for each in self._given):
            return any(each.is_year for each in line.later)
        for each in line.later:
            is_rate = bool(each.rate) and not self.is_of_call(each.rate)
            if not is_rate and (each.is_year or not all(map(self.is_of_call, each.words))):
                return True
        marks = (f"d:{month}-{day}" for month, day in line.days)
        return any(not self._records.fields_with(mark) for mark in marks)

    def is_of_call(self, word: str) -> bool:
        """Whether a word is one of the tool, of a value or of the record of a thing of the call."""
        if self._deed.is_called((word,)):
            return True
        if not self._own:
            call, tool = self._call.call, self._call.tool
            told = f"{tool.description if tool else ''} {call.tool} {call.arguments}"
            self._own.update(map(stem, words_of(told)))
        if stem(word) in self._own:
            return True
        marks = (self._records.marks_of(each.key) for each in self._given if each.kind == "id")
        return any(word in each for each in marks)


def _is_part(code: str, key: str, words: str) -> bool:
    """Whether words narrow a thing down to something of it: "item L1 of order 7", "booking B1 for passenger P2"."""
    part, whole = re.escape(code), rf"(?<![\w-]){re.escape(key)}(?![\w-])"
    return re.search(rf"{part}{_OF}{whole}|{whole}{_FOR}{part}", words) is not None
