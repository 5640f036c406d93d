"""Model calls of a trace that are no part of its conversation: those of helpers beside the agent, failed attempts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from bylaw.trace.readers.chat import ChatMessage, ToolCall, text_id
from bylaw.trace.readers.recorded import MessageMark, call_mark, marks, tool_arguments
from bylaw.trace.readers.span import Generation, ToolRun, is_instruction


def heard(generations: Iterable[Generation], runs: Sequence[ToolRun]) -> list[Generation]:
    """The model calls whose words were said in their conversations."""
    groups: dict[str, list[Generation]] = {}
    for each in generations:
        groups.setdefault(each.session or each.trace, []).append(each)
    ran: dict[str, Counter[MessageMark]] = {}
    for run in runs:
        ran.setdefault(run.session or run.trace, Counter())[_mark_of(run)] += 1
    kept: list[Generation] = []
    for key, group in groups.items():
        if len(group) > 1:
            group = _without_helpers(group)
            group = list(_without_failed(group, ran.get(key, Counter())))
        kept += group
    return kept


def _without_helpers(group: list[Generation]) -> list[Generation]:
    """Without the calls beside an agent's: a router's with examples, a title's. Nobody said what their prompts say.

    An agent that acts, and is told its own history, has heard all that its histories tell. A call that does nothing,
    has other instructions and begins with words that are in none of these is not its.
    """
    acting = [each for each in group if _acts(each)]
    if not any(message.role == "assistant" for each in acting for message in each.history):
        return group
    agents = {each.agent for each in acting}
    instructed = {_instructions(each) for each in acting}
    others = [each for each in group if each.agent in agents and _instructions(each) not in instructed]
    if not others:
        return group
    known = {mark for each in acting for mark in (*_told(each), *_said(each))}
    helpers = [id(each) for each in others if (told := _told(each)) and not _acts(each) and told[0] not in known]
    return [each for each in group if id(each) not in helpers]


def _without_failed(group: list[Generation], ran: Counter[MessageMark]) -> Iterator[Generation]:
    """Without the attempts at one model call, all with one input, that no later history goes on from while it goes on
    from another. Where none does, nothing tells which was used, unless they bear the same call ids."""
    same: dict[object, list[Generation]] = {}
    for each in group:
        same.setdefault((each.agent, len(each.history), _instructions(each)), []).append(each)
    failed: set[int] = set()
    for each in same.values():
        attempts: dict[tuple[MessageMark, ...], list[Generation]] = {}
        for one in each if len(each) > 1 else ():
            if one.output:
                attempts.setdefault(tuple(_exactly(one.history)), []).append(one)
        for given, several in attempts.items():
            if len(several) > 1:
                failed |= _failed(given, several, group, ran)
    return (each for each in group if id(each) not in failed)


def _failed(
    given: tuple[MessageMark, ...], several: list[Generation], group: list[Generation], ran: Counter[MessageMark]
) -> set[int]:
    made = Counter(mark for each in several for mark in _said(each))
    if any(ran[mark] > 1 and ran[mark] >= count for mark, count in made.items()):
        return set()  # each of them ran
    later = [told for each in group if len(told := _exactly(each.history)) > len(given)]
    told_of = [each for each in several if any(_goes_on(told, given, _exactly(each.output)) for told in later)]
    # Of those that are the same to the letter, one counts.
    used = {tuple(_exactly(each.output)): id(each) for each in told_of or several}
    are_alike = {ids for ids in used if any(mark[0] == "call" and mark[-1] for mark in ids)}
    if not told_of and not (len(used) == 1 and are_alike):
        return set()
    return {id(each) for each in several} - set(used.values())


def _goes_on(told: list[MessageMark], given: tuple[MessageMark, ...], said: list[MessageMark]) -> bool:
    return bool(said) and tuple(told[: len(given)]) == given and told[len(given) :][: len(said)] == said


def _acts(generation: Generation) -> bool:
    told = (*generation.history, *generation.output)
    return generation.called or any(message.tool_calls or message.function_call is not None for message in told)


def _instructions(generation: Generation) -> tuple[str, ...]:
    return tuple(str(message.content) for message in generation.history if is_instruction(message))


def _told(generation: Generation) -> list[MessageMark]:
    return [mark for message in generation.history if not is_instruction(message) for mark in marks(message)]


def _said(generation: Generation) -> list[MessageMark]:
    return [mark for message in generation.output for mark in marks(message)]


def _exactly(messages: Iterable[ChatMessage]) -> list[MessageMark]:
    """What messages say, and what they call by which id."""
    found: list[MessageMark] = []
    for message in messages:
        calls = message.tool_calls
        found += [(*call_mark(call), text_id(call.id)) for call in calls] if calls else marks(message)
    return found


def _mark_of(run: ToolRun) -> MessageMark:
    return call_mark(ToolCall(name=run.tool, arguments=tool_arguments(run.arguments)))
