"""Writes the message that an agent receives in place of a tool's result. The message is short, uses business terms and
names the next step.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from bylaw.pack import Pack
from bylaw.shield.decision import Answer, Earlier, Ground, LookUp
from bylaw.trace.event import IS_DONE, MAY_BE_DONE, NOT_DONE, LookedUp

_LINE = re.compile(r"^\S+\.py:\d+: ")
_WORD = re.compile(r"\w+")
_QUOTED = 600
"""The maximum total length of the quoted policy sentences, in characters. The most similar one is always quoted whole.
"""
FAULT = "an internal error in the shield"
OPENING: dict[Answer, str] = dict(zip(("deny", "look_up", "ask"), NOT_DONE, strict=True))
SHOW = (
    "Show the user the text below, word for word, as your whole next message, and wait for the answer. "
    "If the user says yes, make this call again with the same arguments. Otherwise do not make it."
)
ENOUGH = 2
"""After this many unclear answers to a card, the agent is told to stop asking."""
_PERSON = "A reviewer must decide the rest. Do not try again before the decision."
_TEXTS: tuple[tuple[tuple[str, str], ...], ...] = (
    (
        ("note", "{tool} goes ahead, but note:"),
        ("done", f"{IS_DONE} ({{tool}}): this call already ran, so it was not run again."),
        (
            "perhaps",
            f"{MAY_BE_DONE} ({{tool}}): this call was made before, but its result is unknown. "
            "It was not made again. Tell the user this.",
        ),
        ("look_up asks unheard", f"{OPENING['ask']} ({{tool}})."),
        *((stage, f"{opening} ({{tool}}).") for stage, opening in OPENING.items()),
    ),
    (("why", "{why}"),),
    (
        ("look_ups deny", "To see what is allowed, call {look_ups}."),
        ("look_ups note", "Look up: {look_ups}."),
        ("look_ups instead", "Call {look_ups} instead."),
        ("look_ups", "Look up: {look_ups}. Then make the call again if the result allows it."),
        ("retries", "A look-up failed. Try it again: {retries}. If it fails again, ask."),
    ),
    (
        (
            "asks unheard",
            "Only the user can answer this: {asks} Their answer does not reach this check, so do not try again. Tell "
            "the user that you cannot do this, and that they must give their answer to the operator of this service.",
        ),
        ("asks", "Ask the user: {asks}"),
    ),
    (
        ("shown deny", "This was looked up for you.\n{shown}"),
        ("shown", "This was looked up for you. Make the call again if the result allows it.\n{shown}"),
    ),
    (
        ("person retries approval -note", "A reviewer can also decide this. The request is `{approval}`."),
        ("person retries -note", ""),
        (
            "person ask -approval",
            "A reviewer must decide the rest, but no reviewer can answer here. Do not try again.",
        ),
        ("person card", "Both the user and a reviewer must agree. The request is `{approval}`."),
        ("person approval -note", f"{_PERSON} The request is `{{approval}}`."),
        ("person", _PERSON),
    ),
    (
        (
            "card in_vain",
            "The user's answers to this card did not count. Do not ask again in your own words. If your application "
            "shows a button for this card, ask the user to press it. Otherwise hand the user over to a person, or "
            "tell them that this cannot be confirmed here.",
        ),
        ("card done", f"Only if the user wants this done a second time: {SHOW[0].lower()}{SHOW[1:]}\n{{card}}"),
        ("card", f"{SHOW}\n{{card}}"),
        (
            "ask confirmable -asks -person -hopeless",
            "There is no card for this call, so the user cannot confirm it here. Tell the user, and do not try again.",
        ),
    ),
)
"""The parts of the message. Each part has several lines and uses the first one whose conditions are all true. `-`
negates a condition.
"""
_MESSAGE = [
    [
        ({name for name in when.split() if name[0] != "-"}, {name[1:] for name in when.split() if name[0] == "-"}, line)
        for when, line in part
    ]
    for part in _TEXTS
]


def feedback(
    pack: Pack,
    tool: str,
    answer: Answer,
    grounds: Sequence[Ground],
    *,
    runs: bool,
    approval: str = "",
    card: str = "",
    shown: Sequence[LookedUp] = (),
    earlier: Earlier = "",
    failures: int = 0,
) -> str:
    """Return the message for the agent. Empty if there are no objections.

    `card` is the text for the user. `shown` contains look-ups made for the agent. `earlier` says whether the same call
    ran before. `failures` is the number of unclear answers to the card.
    """
    objecting = [ground for ground in grounds if ground.answer != "allow"]
    if answer == "allow" or not objecting:
        return ""
    is_unheard = any(ground.is_unheard for ground in objecting)
    denials = [ground for ground in objecting if ground.answer == "deny" and ground.posture == "enforce"]
    if is_unheard or runs or answer == "look_up" or not all(ground.puts_card for ground in denials):
        card = ""
    # A card turns a denial into a question. The approval is mentioned only after the user has confirmed.
    waits_for_yes = answer == "deny" and bool(card)
    stage = "note" if runs else "ask" if waits_for_yes else answer
    # The user is asked after everybody else, or not at all if another policy denies the call.
    waiting = {"look_up": ("deny", "look_up", "ask"), "deny": ("look_up", "ask")}.get(stage, ())
    told = [ground for ground in objecting if not (ground.puts_card and ground.answer in waiting)]
    by_card = bool(card) or (stage == "look_up" and not is_unheard)
    why = [f"- {reason}" for ground in told if (reason := _why(pack, ground, by_card=by_card))]
    # A denial is final, so questions from other policies are left out.
    asking = [ground for ground in told if stage != "deny" or ground.answer == "deny"]
    look_ups = _calls(each for ground in asking for each in ground.look_ups)
    retries = _calls(each for ground in asking for each in ground.retries) if stage != "deny" else ""
    heard = [ground for ground in asking if not ground.puts_card or is_unheard or runs]
    asks = _once((each.text for ground in heard for each in ground.questions if each.whom == "user"), " ")
    needs_person = stage in ("note", "ask") and not waits_for_yes and any(map(_needs_person, asking))
    is_hopeless = stage == "ask" and needs_person and not (approval or is_unheard or retries)
    if is_hopeless:
        # The user's answer would not help while other questions are unanswered.
        asks = card = ""
    cannot_ask = bool(asks) and is_unheard
    if any(ground.kind == "call" for ground in objecting) or (cannot_ask and not runs):
        # No look-up helps if the call cannot be checked, or if only a user who cannot be reached could allow it.
        look_ups = retries = ""
    contents = "" if runs else "\n".join(f"{_call(each)}: {each.content}" for each in shown)
    texts = {
        "tool": tool, "why": "\n".join(why), "look_ups": "" if contents else look_ups, "retries": retries,
        "asks": asks, "shown": contents, "approval": approval, "card": card,
    }  # fmt: skip
    flags = {
        stage: True,
        earlier: True,
        "unheard": is_unheard,
        "instead": any(each.instead for ground in asking for each in ground.look_ups),
        "person": needs_person and not cannot_ask,
        "hopeless": is_hopeless,
        "in_vain": failures >= ENOUGH,
        "confirmable": not runs and any(ground.puts_card for ground in objecting),
    }
    holding = {name for name, value in (texts | flags).items() if value}
    lines = (
        next((line for needed, barred, line in part if needed <= holding and not barred & holding), "")
        for part in _MESSAGE
    )
    return "\n".join(line.format_map(texts) for line in lines if line)


def _needs_person(ground: Ground) -> bool:
    return any(each.whom == "person" for each in ground.questions) or (ground.answer == "ask" and not ground.questions)


def _calls(look_ups: Iterable[LookUp]) -> str:
    return _once(map(_call, look_ups), "; ")


def _once(texts: Iterable[str], between: str) -> str:
    return between.join(dict.fromkeys(texts))


def _why(pack: Pack, ground: Ground, *, by_card: bool = False) -> str:
    rule, because = _rule(pack, ground), ground.because
    match ground.kind:
        case "call":
            # Hide internal error messages from the agent.
            return f"this call could not be checked: {FAULT if because.startswith(FAULT) else because}."
        case "stop" | "action":
            return f"{ground.for_agent}."
        case "person" | "unguarded" | "doubt":
            return f"{because}."
        case "rule":
            reason = ground.for_agent.partition(". ")[0] if by_card and ground.puts_card else ground.for_agent
            return f"{f'{reason}. ' if reason else ''}{rule}" if rule else f"{ground.for_agent or because}."
        case "guard":
            return f"{_why_guard(ground)}{rule}".strip() or because


def _why_guard(ground: Ground) -> str:
    if ground.failed:
        # Do not show the agent the guard's failing line, or advice for the guard's author.
        return f"this call could not be checked: {_LINE.sub('', ground.because).partition('; ')[0]}. "
    if ground.answer == "deny":
        unknown = (
            "not allowed, whatever the user answers" if ground.questions else "not allowed, whatever a look-up shows"
        )
        return f"{ground.because or unknown}. "
    if ground.missing:
        return f"you have not seen {', '.join(ground.missing)} yet. "
    if asked := " ".join(each.text for each in ground.questions if each.whom == "person"):
        return f"only a reviewer can answer this: {asked} "
    is_request = any(each.fact.startswith("request") for each in ground.questions)
    # The text names the values that the request lacks, or says why the request was unreadable.
    return f"{ground.because}. " if is_request else ""


def _rule(pack: Pack, ground: Ground) -> str:
    """Return the sentences of the policy document. If there is no document, return the definition in the pack."""
    if texts := [_one_line(citation.text) for citation in ground.citations if citation.text]:
        return f'The policy says: "{" ... ".join(_relevant(texts, ground.because))}"'
    policy = pack.policies.get(ground.policy)
    return policy.definition if policy is not None else ""


def _relevant(texts: Sequence[str], because: str) -> list[str]:
    """Return the sentences most similar to the reason, in document order, up to the maximum length.

    The first sentence is not enough, because it may be misleading without the exceptions that follow it.
    """
    if len(texts) == 1:
        return [*texts]
    words = set(_WORD.findall(because.lower()))
    room, chosen = _QUOTED, set[int]()
    for place in sorted(range(len(texts)), key=lambda at: -len(words & _words(texts[at]))):
        if not chosen or len(texts[place]) <= room:
            chosen.add(place)
            room -= len(texts[place])
    return [texts[place] for place in sorted(chosen)]


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


@lru_cache(maxsize=4096)
def _one_line(text: str) -> str:
    """Return a passage on one line. Cached because the same few passages are quoted often."""
    return " ".join(text.split())


def _call(look_up: LookUp | LookedUp) -> str:
    given = [f"{name}={'?' if each is None else each}" for name, each in look_up.arguments.items()]
    return f"{look_up.tool}({', '.join(given)})"
