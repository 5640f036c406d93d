"""What the agent is told in place of a tool's answer: short, in business words, with what to do next."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from bylaw.pack import Pack
from bylaw.shield.decision import Answer, Earlier, Ground, LookUp
from bylaw.trace.event import IS_DONE, MAY_BE_DONE, NOT_DONE, LookedUp

_LINE = re.compile(r"^\S+\.py:\d+: ")
_WORD = re.compile(r"\w+")
_QUOTED = 600
"""So many characters of a policy's sentences are told, and one sentence whole."""
FAULT = "a fault of the shield itself"
OPENING: dict[Answer, str] = dict(zip(("deny", "look_up", "ask"), NOT_DONE, strict=True))


SHOW = (
    "Show the user the text below, word for word, as your whole next message, and wait for the answer. "
    "If it is yes, make this call again with the same arguments; if not, do not make it."
)
"""What the agent is told to do with a card; the card follows, and nothing after it."""


ENOUGH = 2
"""So often a card is answered in vain before the agent is told to stop asking."""
WAY_OUT = (
    "The user's answers to this card did not count. Do not ask again in words. If your application shows a button for "
    "this card, ask the user to press it. Otherwise tell the user that this cannot be confirmed here."
)
NO_CARD = "There is no card for this call, so it cannot be confirmed here: tell the user so, and do not try again."


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
    """The message for the agent; empty if nothing objects.

    `card` is the text to show the user, `shown` are look-ups that were made for the agent, `earlier` says whether the
    same call ran before, and `failures` how often the card was answered in vain.
    """
    objecting = [ground for ground in grounds if ground.answer != "allow"]
    if answer == "allow" or not objecting:
        return ""
    is_unheard = any(ground.is_unheard for ground in objecting)
    denials = [ground for ground in objecting if ground.answer == "deny" and ground.posture == "enforce"]
    if is_unheard or runs or answer == "look_up" or not all(ground.puts_card for ground in denials):
        card = ""
    is_denied_without_yes = answer == "deny" and bool(card)
    if is_denied_without_yes:
        # The user may give one; what a person has to decide is told after that.
        answer = "ask"
    # Where something is looked up first, the card comes after it: until then the agent has none to show.
    by_card = bool(card) or (answer == "look_up" and not (runs or is_unheard))
    lines = [f"{tool} goes ahead, but note:" if runs else _opening(answer, tool, earlier)]
    look_ups: dict[str, None] = {}
    retries: dict[str, None] = {}
    asked: dict[str, None] = {}
    needs_person = False
    waits_for_yes = [ground for ground in objecting if ground.puts_card and not runs]
    for ground in objecting:
        if ground in waits_for_yes and (answer == "look_up" or (answer == "deny" and ground.answer != "deny")):
            # The user is asked once nothing else is missing.
            continue
        if why := _why(pack, ground, by_card=by_card):
            lines.append(f"- {why}")
        for each in ground.look_ups:
            look_ups[_call(each)] = None
        for each in ground.retries:
            retries[_call(each)] = None
        for question in ground.questions:
            if question.whom == "user":
                if not ground.puts_card or is_unheard or runs:
                    asked[question.text] = None
            else:
                needs_person = True
        needs_person = needs_person or (ground.answer == "ask" and not ground.questions)
    needs_person = needs_person and not is_denied_without_yes
    is_denied = answer == "deny" and not runs
    is_hopeless = needs_person and answer == "ask" and not (approval or runs or is_unheard or retries)
    if is_hopeless:
        # Whatever the user says, nobody can say the rest.
        asked, card = {}, ""
    if answer == "look_up":
        # Whether a person is needed is told once that is seen.
        needs_person = needs_person and runs
    if is_denied:
        # Nothing that other policies lack, nor what a person or the user might say, would let it through.
        denying = [ground for ground in objecting if ground.answer == "deny"]
        look_ups = {_call(each): None for ground in denying for each in ground.look_ups}
        asked = {each.text: None for ground in denying for each in ground.questions if each.whom == "user"}
        retries, needs_person = {}, False
    if shown and not runs:
        look_ups = {}
    if any(ground.kind == "call" for ground in objecting):
        # Whatever they would show, this call could not be checked: to look up and try again would go on for ever.
        look_ups, retries = {}, {}
    if asked and is_unheard and not runs:
        # Only the user could let it through, and they are not heard: no look-up helps.
        look_ups, retries = {}, {}
        lines[0] = lines[0] if is_denied else _opening("ask", tool, earlier)
    if look_ups:
        then = "" if runs or is_denied else " Then make the call again if what you see allows it."
        shows = "What would be allowed may be seen by" if is_denied else "Look up:"
        lines.append(f"{shows} {'; '.join(look_ups)}.{then}")
    if retries and not look_ups:
        tried = "; ".join(retries)
        lines.append(f"This failed when you looked it up; try it again, and ask where it fails again: {tried}.")
    if asked and is_unheard:
        lines.append(
            f"Only the user can say: {' '.join(asked)} What they answer is not heard here, so do not try again: tell "
            "the user that you cannot do it, and that whoever runs this desk has to be told of the answer."
        )
        needs_person = False
    elif asked:
        lines.append(f"Ask the user: {' '.join(asked)}")
    if shown and not runs:
        then = "" if is_denied else " Make the call again if what you see allows it."
        lines.append(f"This was looked up for you.{then}")
        lines += [f"{_call(each)}: {each.content}" for each in shown]
    if needs_person and retries and not runs:
        lines += [f"A person may decide it as well: it waits for them as `{approval}`."] if approval else []
    elif needs_person:
        if answer == "ask" and not approval and not runs:
            lines.append("A person has to decide the rest, and nobody can approve it here: do not try again.")
        elif card:
            lines.append(f"Beside the user's answer, a person has to decide: it waits for them as `{approval}`.")
        else:
            waits = f" It waits for them as `{approval}`." if approval and answer == "ask" else ""
            lines.append(f"A person has to decide the rest: do not try again until somebody has.{waits}")
    if card and failures >= ENOUGH:
        lines.append(WAY_OUT)
    elif card:
        lines += [SHOW, card]
    elif waits_for_yes and answer == "ask" and not (asked or needs_person or is_hopeless):
        lines.append(NO_CARD)
    return "\n".join(lines)


def _opening(answer: Answer, tool: str, earlier: Earlier) -> str:
    match earlier:
        case "done":
            return f"{IS_DONE} ({tool}): this call was carried out before. It was not made a second time."
        case "perhaps":
            unknown = "this call was made before, and its result is not known. It was not made again"
            return f"{MAY_BE_DONE} ({tool}): {unknown}. Tell the user so."
        case "":
            return f"{OPENING[answer]} ({tool})."


def _rule(pack: Pack, ground: Ground) -> str:
    """What the document says, or, where it is not at hand, what the policy says in the pack's words."""
    if texts := [_one_line(citation.text) for citation in ground.citations if citation.text]:
        return f'The policy says: "{" ... ".join(_telling(texts, ground.because))}"'
    policy = pack.policies.get(ground.policy)
    return policy.definition if policy is not None else ""


def _telling(texts: Sequence[str], because: str) -> list[str]:
    """Of several sentences those that share most words with the reason, as many as fit, in the document's order: the
    first may say the opposite of what was decided."""
    words = set(_WORD.findall(because.lower()))
    room, chosen = _QUOTED, set[int]()
    for place in sorted(range(len(texts)), key=lambda at: -len(words.intersection(_WORD.findall(texts[at].lower())))):
        if not chosen or len(texts[place]) <= room:
            chosen.add(place)
            room -= len(texts[place])
    return [texts[place] for place in sorted(chosen)]


def _why(pack: Pack, ground: Ground, *, by_card: bool = False) -> str:
    rule = _rule(pack, ground)
    if ground.kind == "call":
        return f"this call could not be checked: {_without_fault(ground.because)}."
    if ground.failed:
        return f"this call could not be checked: {_for_agent(ground.because)}. {rule}".strip()
    if ground.kind == "stop":
        return f"{ground.for_agent}."
    if ground.kind in ("person", "unguarded", "doubt"):
        return f"{ground.because}."
    if ground.kind == "rule":
        told = ground.for_agent.partition(". ")[0] if by_card and ground.puts_card else ground.for_agent
        why = f"{told}. " if told else ""
        return why + rule if rule else f"{ground.for_agent or ground.because}."
    if ground.answer == "deny":
        unknown = "whatever the user may answer" if ground.questions else "whatever a look-up may show"
        return f"{ground.because or unknown}. {rule}"
    if ground.missing:
        return f"nothing you have looked up shows {', '.join(ground.missing)}. {rule}".strip()
    if asked := " ".join(each.text for each in ground.questions if each.whom == "person"):
        return f"only a person can say: {asked} {rule}".strip()
    if any(each.fact.startswith("request") for each in ground.questions):
        # Which of its values the request does not bear out, or why it could not be read.
        return f"{ground.because}. {rule}".strip()
    return rule or ground.because


@lru_cache(maxsize=4096)
def _one_line(text: str) -> str:
    """A passage of the document without its line breaks; the same few are told again and again."""
    return " ".join(text.split())


def _for_agent(because: str) -> str:
    """Why a guard could not answer, without its line and without what its author should do about it."""
    return _LINE.sub("", because).partition("; ")[0]


def _without_fault(because: str) -> str:
    """Why a call could not be judged, without what Python says of a fault of our own."""
    return FAULT if because.startswith(FAULT) else because


def _call(look_up: LookUp | LookedUp) -> str:
    return f"{look_up.tool}({_given(look_up.arguments)})"


def _given(arguments: Mapping[str, Any]) -> str:
    return ", ".join([f"{name}={_short(value)}" for name, value in arguments.items()])


def _short(value: Any) -> str:
    return "?" if value is None else str(value)
