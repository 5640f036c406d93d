"""Resolves each call of a generic tool to the actions that it performs.

A call is resolved before it is decided, both live and in an audit. An action's parameters come only from evidence: the
call's own arguments, read by a suitable parser, or the page that was last shown.
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from bylaw.actions.action import Action, Actions, Otherwise, PageTerms, ReadTerms
from bylaw.actions.evidence import shows_facts
from bylaw.actions.part import LONGEST, Part, commands_in, fits, parts_in, paths_of, value_of
from bylaw.actions.taking import Ambiguous, NotAtOnce, NotTaken, Take, names_element
from bylaw.reading import Unreadable
from bylaw.trace.event import Call, Event, Result

_OF_PAGES = frozenset(
    ("key", "keys", "text", "submit", "slowly", "delay", "button", "modifiers", "doubleClick", "values", "fields")
)
"""Arguments of page tools that have a known meaning."""
_CUT = re.compile(
    r"[\u2026\ufffd]|[\u2022\u25cf\u2588\u2593\u2592\u2591\u25a0]{2}|(?:(?<![/.])\.{3,}|\[[^\[\]]*[A-Za-z]{5}[^\[\]]*\]"
    r"|<[^<>]*[A-Za-z]{4}[^<>]*>)\s*$"
)
"""Matches text that a log has shortened or masked: an ellipsis at the end, or masking characters. `./...` does not
match.
"""
MOST = 50
"""The maximum number of actions that one call may perform."""


class Performed(Struct, frozen=True):
    calls: tuple[Call, ...]
    """The actions, in the form of calls, in order."""
    unresolved: str = ""
    """Why the actions are unknown. Empty if they are known."""
    otherwise: Otherwise = "ask"
    """The decision for a call whose actions are unknown."""
    shown: Call | None = None
    """The unresolved call as a reviewer sees it: without the agent's own description of an element."""
    look_up: str = ""
    """The tool to call first, if a look at the page would resolve the call."""
    instead: Call | None = None
    """A call to make instead, which opens the address of a link."""
    is_evidence: bool = False
    """Whether the result is evidence: it comes only from the source that the call's single action names, and contains
    nothing that the agent wrote.
    """
    untold: tuple[Mapping[str, Any], ...] = ()
    """For each action, the call's values that are not parameters of the action. Calls that differ in these values are
    different calls.
    """

    @property
    def compared(self) -> Any:
        """All data that a decision depends on. Equal for two calls with the same effect."""
        calls = [(each.tool, each.arguments) for each in self.calls]
        arguments = self.shown.arguments if self.shown is not None else {}
        return calls, list(self.untold), self.unresolved, arguments


class Performing:
    """Follows a conversation and resolves each call to its actions."""

    def __init__(self, actions: Actions) -> None:
        self._actions = actions
        self._calls: dict[int, Call] = {}
        """Calls without a result whose tools may show a page, by step."""
        self._state: Any = None
        self._shells = {tool for tool, found in actions.by_tool.items() if any(map(_goes_on, found))}
        """Tools whose shell session continues in the next call."""
        self._moved: set[str] = set()
        """Tools whose shell may have left the folder in which it started."""
        if any(actions.pages.changes_with(tool) for tool in actions.by_tool):
            from bylaw.actions.page_state import PageState

            self._state = PageState(actions.pages)

    def read_ahead(self) -> None:
        if self._state is not None:
            _ = self._state.page

    def observe(self, step: int, event: Event) -> None:
        if type(event) is Call and event.tool in self._shells and not event.refused and _may_move(event):
            self._moved.add(event.tool)
        state = self._state
        if state is None:
            return
        if type(event) is Call:
            state.call(step, event)
            if self._actions.pages.changes_with(event.tool):
                self._calls[step] = event
        elif type(event) is Result and event.call is not None:
            call = self._calls.pop(event.call, None)
            if call is not None:
                state.result(event, call)

    def of(self, call: Call) -> Performed | None:
        """Return the actions that a call will perform. None if its tool has no actions."""
        return self._performed(call, self._state)

    def on_snapshot(self, call: Call, snapshot: str) -> Performed | None:
        """Return the actions that a call would perform on the page in the given snapshot."""
        from bylaw.actions.page_state import PageState

        state, tool = PageState(self._actions.pages), self._actions.pages.snapshot
        state.result(Result(0, snapshot, tool=tool), Call(tool, {}, agent=call.agent))
        return self._performed(call, state)

    def _performed(self, call: Call, state: Any) -> Performed | None:
        actions = self._actions.by_tool.get(call.tool)
        if actions is None:
            return None
        otherwise = self._actions.otherwise[call.tool]
        if call.fault:
            return Performed((), call.fault, otherwise, replace(call, arguments={}))
        resolving = _Resolving(call, actions, state, self._actions, call.tool in self._moved)
        try:
            found = resolving.calls()
        except _OpenInstead as error:
            return replace(self._unresolved(call, state, str(error), otherwise), instead=error.call)
        except NotAtOnce as error:
            return self._unresolved(call, state, str(error), "deny")
        except (NotTaken, Unreadable) as error:
            why = error.reason if isinstance(error, Unreadable) else str(error)
            return self._unresolved(call, state, why, otherwise)
        except Exception as error:
            # If a call could not be parsed, it may do anything.
            return self._unresolved(call, state, f"the call cannot be read ({type(error).__name__})", otherwise)
        calls, untold = tuple(each for each, _ in found), tuple(each for _, each in found)
        return Performed(calls, untold=untold, is_evidence=len(calls) == 1 and resolving.is_evidence)

    def _unresolved(self, call: Call, state: Any, why: str, otherwise: Otherwise) -> Performed:
        if otherwise == "allow":
            return Performed((), otherwise="allow")
        terms, look_up = self._actions.pages, ""
        arguments = {name: _undescribed(value, terms) for name, value in call.arguments.items()}
        arguments = {name: value for name, value in arguments.items() if name not in terms.description}
        if state is not None and terms.changes_with(call.tool):
            from bylaw.actions.page_identity import identity_of_call

            try:
                arguments |= identity_of_call(state, call)
            except NotTaken:
                look_up = terms.snapshot if otherwise == "ask" else ""
        return Performed((), why, otherwise, replace(call, arguments=arguments), look_up)


def _undescribed(value: Any, terms: PageTerms) -> Any:
    """Remove the agent's own descriptions of page elements from a value."""
    if isinstance(value, list):
        return [_undescribed(each, terms) for each in cast("list[Any]", value)]
    record: Any = value
    if not isinstance(value, dict) or not any(name in record for name in terms.target):
        return record
    return {name: each for name, each in record.items() if name not in ("name", *terms.description)}


def _goes_on(action: Action) -> bool:
    return action.reads is not None and action.kind == "shell" and not action.reads.fresh


def _may_move(call: Call) -> bool:
    texts = [each for each in call.arguments.values() if isinstance(each, str)]
    try:
        return bool(call.fault) or any(each.program == "cd" for text in texts for each in commands_in(text))
    except Exception:
        # An unreadable command could do anything.
        return True


class _OpenInstead(Exception):
    """Raised if the agent should open the address of a link instead of clicking the link."""

    def __init__(self, call: Call) -> None:
        super().__init__("a click on a link may do more than open the linked page")
        self.call = call


class _Resolving:
    def __init__(self, call: Call, actions: tuple[Action, ...], state: Any, all: Actions, is_moved: bool) -> None:
        self._call = call
        self._actions = actions
        self._state = state
        self._all = all
        self._pages = all.pages
        self._unread = all.unread.get(call.tool, frozenset[str]())
        self._tool = all.plain.get(call.tool)
        self._with_secrets = all.secrets.get(call.tool, frozenset[str]())
        self._is_moved = is_moved
        self._page: Any = None
        self.is_evidence = True
        """True if no part of the call lets the agent choose the content of the result."""

    def calls(self) -> list[tuple[Call, Mapping[str, Any]]]:
        """Return the actions as calls, each with the original call's values that are not parameters. Raises NotTaken or
        Unreadable if the actions are unknown.
        """
        self._check_secrets()
        arguments = self._call.arguments
        whole = [each for each in self._actions if each.kind == "call" and each.fits_call(arguments)]
        if any(each.effect != "write" for each in whole) and not self._may_look():
            whole = [each for each in whole if each.effect == "write"]
        found = [(self._made(action, None), self._untold(action, None), -1) for action in whole]
        fitted = list(whole)
        parts = list(self._parts())
        self.is_evidence = len(parts) < 2
        for place, part in enumerate(parts):
            fitting = self._fitting(part)
            if len(parts) == 1 and part.kind == "page" and all(each.is_fallback for each in fitting):
                self._check_link(part.value)
            if not fitting:
                if part.kind == "shell":
                    paths_of(part)
                raise NotTaken(f"no action is declared for {part.words}")
            fitted += fitting
            for action in fitting:
                self.is_evidence = self.is_evidence and shows_facts(action, part.value)
                act = place if part.target is None else part.target.act
                found.append((self._made(action, part), self._untold(action, part), act))
        if not parts:
            # If some actions match only parts of a call, an action that matches every call is not enough for a call in
            # which no part was found.
            is_whole = all(each.kind == "call" for each in self._actions)
            if not any(is_whole or not each.is_of_any_call for each in whole):
                raise NotTaken("no action is declared for this call")
        self._check_arguments(fitted)
        # A write counts once for each action that performs it.
        counted = {each.name for each in self._actions if each.effect == "write"}
        listed: list[tuple[str, Any, int]] = []
        known: list[tuple[Call, Mapping[str, Any]]] = []
        for each, untold, act in found:
            named = (each.tool, each.arguments, act if each.tool in counted else -1)
            if named not in listed:
                listed.append(named)
                known.append((each, untold))
        if len(known) > MOST:
            raise NotTaken(f"the call performs more than {MOST} actions")
        if len(known) > 1:
            # Consent to one action does not cover a call that also performs other actions.
            together = [each.tool for each, _ in known]
            known = [(each, {**untold, "made together": together}) for each, untold in known]
        return known

    def _check_secrets(self) -> None:
        """Check that the arguments listed under `secrets` contain nothing that may be a password, key or token."""
        from bylaw.reading.secret import secrets_in, secrets_in_command

        shells = {each.reads.argument for each in self._actions if each.reads is not None and each.kind == "shell"}
        for name in sorted(self._with_secrets):
            for text in _texts(self._call.arguments.get(name)):
                found = secrets_in_command(text, commands_in(text)) if name in shells else secrets_in(text)
                if found:
                    raise NotTaken(f"`{found[0][:6]}...` in `{name}` may be a password, key or token")

    def _may_look(self) -> bool:
        """Whether the call's arguments name no element, key or field."""
        given = self._call.arguments
        named = (*self._pages.target, "key", "keys", "fields", *filter(names_element, given))
        if not self._pages.changes_with(self._call.tool) or self._call.tool == self._pages.snapshot:
            return True
        return not any(given.get(name) for name in named)

    def _check_link(self, element: Any) -> None:
        """Raise _OpenInstead if a click would follow a link to a page that the agent may open by its address."""
        from bylaw.actions.page_identity import listed_page

        address = listed_page(self._page, element, self._pages)
        opening = (
            Call(tool, {action.reads.argument: address})
            for tool, actions in self._all.by_tool.items()
            for action in actions
            if address and action.reads is not None and action.kind == "url" and action.effect == "read"
        )
        if (call := next(opening, None)) is not None:
            raise _OpenInstead(call)

    def _fitting(self, part: Part) -> list[Action]:
        """Return the actions that match a part of the call. Fallback actions are returned only if no other action
        matches.
        """
        for is_fallback in (False, True):
            of_part = (each for each in self._actions if each.kind == part.kind and each.is_fallback is is_fallback)
            if fitting := [each for each in of_part if self._fits(each, part)]:
                return fitting
        return []

    def _check_arguments(self, fitted: Sequence[Action]) -> None:
        known = {name for each in self._actions for name in each.where} | self._unread | self._with_secrets
        known |= {each.reads.argument for each in self._actions if each.reads is not None}
        known |= {take.field for each in fitted for take in each.takes if take.source == "argument"}
        if any(each.kind == "page" for each in self._actions):
            known |= {*_OF_PAGES, *self._pages.target, *self._pages.description}
            known |= {name for name in self._call.arguments if names_element(name)}
        if not any(each.kind in ("shell", "sql") for each in self._actions):
            # Commands and statements may have another meaning in another folder or schema, or with other values.
            known |= set(self._tool.parameters if self._tool is not None else ())
        for name, value in self._call.arguments.items():
            if value is not None and name not in known:
                raise NotTaken(f"the pack does not say what the argument `{name}` means")

    def _parts(self) -> Iterator[Part]:
        read: set[tuple[str, str, str | None]] = set()
        for action in self._actions:
            if action.on is not None and ("page", "", None) not in read:
                read.add(("page", "", None))
                yield from self._targets()
            elif (terms := action.reads) is not None:
                how = (terms.kind, terms.argument, terms.dialect)
                if how not in read and self._call.arguments.get(terms.argument) is not None:
                    read.add(how)
                    yield from self._read(terms, self._call.arguments[terms.argument])

    def _targets(self) -> Iterator[Part]:
        from bylaw.actions.page_state import name_of, targets_of

        if self._state is None:
            raise NotTaken("no page has been shown yet")
        page = self._page = self._state.page_for(self._call)
        for each in targets_of(page, self._call, self._state.terms):
            named = name_of(page, each.element)
            words = named if len(named) <= LONGEST else f"{named[:LONGEST]}\u2026"
            yield Part("page", "", each.element, words, each.item, target=each)

    def _read(self, terms: ReadTerms, value: Any) -> Iterator[Part]:
        if isinstance(value, list) and terms.kind == "shell":
            raise NotTaken(f"argument `{terms.argument}` is a list, which the tool may run as the words of one command")
        values = cast("list[Any]", value) if isinstance(value, list) else [value]
        for text in values:
            if not isinstance(text, str):
                raise NotTaken(f"argument `{terms.argument}` is not text")
            if _CUT.search(text):
                raise NotTaken(f"argument `{terms.argument}` may be truncated, and the missing part could do anything")
            for found, words in parts_in(terms, text):
                yield Part(terms.kind, terms.argument, found, words, is_moved=self._is_moved)

    def _fits(self, action: Action, part: Part) -> bool:
        if not action.fits_call(self._call.arguments):
            return False
        if action.on is not None:
            from bylaw.actions.page_identity import only_types
            from bylaw.actions.page_state import fits_target

            page, target = self._page, part.target
            if not fits_target(page, target, action.on):
                return False
            return action.effect == "write" or only_types(page, target, self._call.arguments, self._pages)
        opens = part.kind == "url" and self._pages.changes_with(self._call.tool)
        if opens and action.effect != "write" and not self._pages.lists(part.value.address):
            return False
        terms = action.reads
        return terms is not None and terms.argument == part.argument and fits(terms, part, action)

    def _made(self, action: Action, part: Part | None) -> Call:
        arguments: dict[str, Any] = {}
        for take in action.takes:
            try:
                arguments[take.name] = take.fitted(self._taken(take, part, action))
            except NotTaken as error:
                if not take.optional or isinstance(error, Ambiguous):
                    raise NotTaken(f"`{action.name}`: {error}") from None
        call = self._call
        return Call(action.name, arguments, call.id, call.by, call.turn, call.agent, "", call.time, call.refused)

    def _untold(self, action: Action, part: Part | None) -> dict[str, Any]:
        """Return the call's values that the action's parameters do not fully determine."""
        told = {take.field for take in action.takes if take.source == "argument"}
        if part is None or part.kind != "page":
            # A resolved path determines the whole argument.
            if action.reads is not None and any((take.source, take.field) == ("path", "path") for take in action.takes):
                told.add(action.reads.argument)
            untold = _as_untold(self._call.arguments, told)
            if part is None and len(action.of) > 1:
                untold["tool"] = self._call.tool
            if part is None and action.effect == "write" and self._pages.changes_with(self._call.tool):
                from bylaw.actions.page_identity import identity_of_call

                untold |= identity_of_call(self._state, self._call)
            return untold
        from bylaw.actions.page_identity import identity_of

        told |= {*self._pages.target, *self._pages.description}
        given = {name: value for name, value in self._call.arguments.items() if not names_element(name)}
        if part.item:
            given = {name: value for name, value in given.items() if not isinstance(value, list)}
        untold = _as_untold(given, told)
        own = {take.field for take in action.takes if take.source == "item"}
        untold |= _as_untold(part.item, {*own, "name", *self._pages.target, *self._pages.description})
        taken = {(take.source, take.field) for take in action.takes if take.pattern is None}
        identity = identity_of(self._page, part.value, self._pages)
        if any((take.source, take.field) == ("page", "text") for take in action.takes):
            identity.pop("numbers on the page", None)
        return untold | {name: value for name, value in identity.items() if _TOLD_BY.get(name) not in taken}

    def _taken(self, take: Take, part: Part | None, action: Action) -> Any:
        if take.source == "argument":
            if (value := self._call.arguments.get(take.field)) is None:
                raise NotTaken(f"argument `{take.field}` is missing")
            return value
        assert part is not None
        if take.source == "item":
            if (value := part.item.get(take.field)) is None:
                raise NotTaken(f"the call states no `{take.field}` for this element")
            return value
        if part.kind == "page":
            from bylaw.actions.page_state import taken_from_page

            return taken_from_page(take, self._page, part.value, self._state.terms)
        value: Any = value_of(part, action, take.field)
        if value is None:
            raise NotTaken(f"`${take.source}.{take.field}` is unknown")
        return sorted(cast("frozenset[str]", value)) if isinstance(value, frozenset) else value


_TOLD_BY = {"element": ("element", "name"), "filled in": ("page", "fields"), "address of the page": ("page", "url")}
"""Action parameters that repeat part of an element's identity."""


def _as_untold(given: Mapping[str, Any], told: Container[str]) -> dict[str, Any]:
    return {f"argument {name}": value for name, value in given.items() if name not in told and value is not None}


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a value, including those in lists and records."""
    waiting = [value]
    while waiting:
        here: Any = waiting.pop()
        if isinstance(here, str):
            yield here
        elif isinstance(here, dict | list):
            waiting += cast("dict[str, Any]", here).values() if isinstance(here, dict) else cast("list[Any]", here)
