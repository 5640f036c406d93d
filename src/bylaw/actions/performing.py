"""Resolves each call of a generic tool to its actions.

A call is resolved before it is judged, both live and in an audit. An action's parameters come only from evidence: the
call's own arguments, read by a suitable reader, or the page shown last.
"""

import re
import unicodedata
from collections.abc import Container, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Literal, cast
from urllib.parse import unquote_plus

from msgspec import Struct
from msgspec.structs import replace

from bylaw.actions.action import Action, Actions, Otherwise, PageTerms, ReadTerms
from bylaw.actions.evidence import shows_facts
from bylaw.actions.taking import Ambiguous, Kind, NotAtOnce, NotTaken, Take, names_element
from bylaw.reading import Unreadable
from bylaw.trace.event import Call, Event, Result

_OF_PAGES = frozenset(
    ("key", "keys", "text", "submit", "slowly", "delay", "button", "modifiers", "doubleClick", "values", "fields")
)
"""Page arguments with a known meaning."""
_CUT = re.compile(
    r"[\u2026\ufffd]|[\u2022\u25cf\u2588\u2593\u2592\u2591\u25a0]{2}|(?:(?<![/.])\.{3,}|\[[^\[\]]*[A-Za-z]{5}[^\[\]]*\]"
    r"|<[^<>]*[A-Za-z]{4}[^<>]*>)\s*$"
)
"""Matches text that a log has shortened or masked: a mark at the end, or masking characters. `./...` is not a mark."""
MOST = 50
"""The maximum number of actions in a call."""
LONGEST = 200
"""The maximum length of a part of a call in a message."""


class Performed(Struct, frozen=True):
    calls: tuple[Call, ...]
    """The performed actions as calls, in order."""
    unresolved: str = ""
    """The reason why the actions are unknown. Empty if they are known."""
    otherwise: Otherwise = "ask"
    """The answer for a call with unknown actions."""
    shown: Call | None = None
    """The unresolved call for a reviewer, without the agent's description of an element."""
    look_up: str = ""
    """The tool to call first, if seeing the page would help."""
    instead: Call | None = None
    """The call to make instead. It opens the page that a link points to."""
    is_evidence: bool = False
    """Whether the result comes only from the source that the single action of the call names, with nothing from the
    agent.
    """
    untold: tuple[Mapping[str, Any], ...] = ()
    """For each action, the values in the call that are not its parameters. Calls with different values are different
    calls.
    """

    @property
    def compared(self) -> Any:
        """Everything that a decision depends on. It is equal for two calls with the same effect."""
        calls = [(each.tool, each.arguments) for each in self.calls]
        arguments = self.shown.arguments if self.shown is not None else {}
        return calls, list(self.untold), self.unresolved, arguments


class Part(Struct, frozen=True):
    """A part of a call, found by a reader: a statement, a command or an element."""

    kind: Kind
    argument: str
    value: Any
    words: str
    item: Mapping[str, Any] = {}
    """The record of the part in a list of arguments. Empty if there is none."""
    is_moved: bool = False
    """Whether a command may run outside the first folder."""
    target: Any = None
    """The effect of the call on the element."""


class Performing:
    """Follows a conversation and resolves each call to its actions."""

    def __init__(self, actions: Actions) -> None:
        self._actions = actions
        self._calls: dict[int, Call] = {}
        """Calls without results by tools that may show a page, by step."""
        self._state: Any = None
        self._shells = {tool for tool, found in actions.by_tool.items() if any(map(_goes_on, found))}
        """Tools whose shell continues in the next call."""
        self._moved: set[str] = set()
        """Tools whose shell may have left its first folder."""
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
        """Return the actions that a call will perform, or None if its tool has none."""
        return self._performed(call, self._state)

    def on_snapshot(self, call: Call, snapshot: str) -> Performed | None:
        """Return the actions that a call would perform on the page in a snapshot."""
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
            # A call that a reader could not read may mean anything.
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
    """Remove the agent's own descriptions of elements from a value."""
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
        return bool(call.fault) or any(each.program in _MOVING for text in texts for each in _commands(text))
    except Exception:
        # An unreadable command could do anything.
        return True


_MOVING = frozenset(("cd", "pushd", "popd", "chdir"))


@lru_cache(maxsize=64)
def _commands(text: str) -> tuple[Any, ...]:
    from bylaw.reading.shell import read_shell

    return read_shell(text)


class _OpenInstead(Exception):
    """The agent should open the link's page by its address instead of clicking."""

    def __init__(self, call: Call) -> None:
        super().__init__("a click may do more than open the page to which the link leads")
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
        """True if the agent cannot choose the content of the result in any part of the call."""

    def calls(self) -> list[tuple[Call, Mapping[str, Any]]]:
        """Return the actions as calls, each with the remaining values of the original call. Raises NotTaken or
        Unreadable if they are unknown.
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
            # If other actions match parts of a call, an action that matches every call is not enough for a call without
            # parts.
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
            # Consent to one action does not cover a call that also has other actions.
            together = [each.tool for each, _ in known]
            known = [(each, {**untold, "made together": together}) for each, untold in known]
        return known

    def _check_secrets(self) -> None:
        """Check that no argument under `secrets` may be a password, key or token."""
        from bylaw.reading.secret import secrets_in, secrets_in_command

        shells = {each.reads.argument for each in self._actions if each.reads is not None and each.kind == "shell"}
        for name in sorted(self._with_secrets):
            for text in _texts(self._call.arguments.get(name)):
                found = secrets_in_command(text, _commands(text)) if name in shells else secrets_in(text)
                if found:
                    raise NotTaken(f"`{found[0][:6]}...` in `{name}` may be a password, key or token")

    def _may_look(self) -> bool:
        """Whether the arguments of a call name no element, key or field."""
        given = self._call.arguments
        named = (*self._pages.target, "key", "keys", "fields", *filter(names_element, given))
        if not self._pages.changes_with(self._call.tool) or self._call.tool == self._pages.snapshot:
            return True
        return not any(given.get(name) for name in named)

    def _check_link(self, element: Any) -> None:
        """Raise _OpenInstead if a link leads to a page that the agent may open by its address."""
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
        """Return the actions of a part of the call. Fallback actions are used only if no other action fits."""
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
            # Commands and statements may mean something else in another folder or schema, or with other values.
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
            raise NotTaken(f"argument `{terms.argument}` is a list, which may be the words of one command")
        values = cast("list[Any]", value) if isinstance(value, list) else [value]
        for text in values:
            if not isinstance(text, str):
                raise NotTaken(f"argument `{terms.argument}` is not text")
            if _CUT.search(text):
                raise NotTaken(f"argument `{terms.argument}` may be truncated, and the missing part could do anything")
            for found, words in _found(terms, text):
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
        return terms is not None and terms.argument == part.argument and _FITS[part.kind](terms, part, action)

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
        """Return the values in the call that the parameters of the action do not fully state."""
        told = {take.field for take in action.takes if take.source == "argument"}
        if part is None or part.kind != "page":
            # A resolved path states the whole argument.
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
                raise NotTaken(f"the call has no `{take.field}` for the element")
            return value
        if part.kind == "page":
            from bylaw.actions.page_state import taken_from_page

            return taken_from_page(take, self._page, part.value, self._state.terms)
        value: Any = _of_part(part, action, take.field)
        if value is None:
            raise NotTaken(f"`${take.source}.{take.field}` is unknown")
        return sorted(cast("frozenset[str]", value)) if isinstance(value, frozenset) else value


_TOLD_BY = {"element": ("element", "name"), "filled in": ("page", "fields"), "address of the page": ("page", "url")}
"""Parameters of actions that repeat a part of the identity of an element."""


def _as_untold(given: Mapping[str, Any], told: Container[str]) -> dict[str, Any]:
    return {f"argument {name}": value for name, value in given.items() if name not in told and value is not None}


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a value, including lists and records."""
    waiting = [value]
    while waiting:
        here: Any = waiting.pop()
        if isinstance(here, str):
            yield here
        elif isinstance(here, dict | list):
            waiting += cast("dict[str, Any]", here).values() if isinstance(here, dict) else cast("list[Any]", here)


def _found(terms: ReadTerms, text: str) -> Iterator[tuple[Any, str]]:
    match terms.kind:
        case "sql":
            from bylaw.reading.sql import read_sql

            for statement in read_sql(text, terms.dialect, terms.declared):
                yield statement, f"the statement `{statement.kind}`"
        case "shell":
            for command in _commands(text):
                words = " ".join((command.program, *(each.text for each in command.words)))
                yield command, f"the command `{words[:LONGEST]}`"
        case "path":
            from bylaw.reading.path import check_argument

            check_argument(text, terms.root)
            yield text, f"the path `{text[:LONGEST]}`"
        case _:
            from bylaw.reading.url import read_url

            yield read_url(text), f"the address `{text[:LONGEST]}`"


def _fits_statement(terms: ReadTerms, part: Part, action: Action) -> bool:
    statement = part.value
    if statement.writes and action.effect != "write":
        return False
    if terms.statements and statement.kind not in terms.statements:
        return False
    if terms.bounded is not None and statement.bounded is not terms.bounded:
        return False
    if terms.tables:
        tables = statement.tables_written if statement.writes else statement.tables_read
        if not tables:
            return False
        return all(any(pattern.occurs(table) for pattern in terms.tables) for table in tables)
    return True


def _fits_command(terms: ReadTerms, part: Part, action: Action) -> bool:
    """Whether a command may match. A word that is not yet known may be anything."""
    command = part.value
    is_unasked = action.effect != "write" or bool(terms.commands) or bool(terms.runs) or bool(terms.ordinary)
    if is_unasked and not _is_closed(terms, part):
        return False
    if command.writes is not (action.effect == "write") and (command.writes or terms.ordinary):
        return False
    if terms.programs and command.written not in terms.programs:
        if command.program not in terms.programs:
            return False
        if not command.is_of_system:
            raise NotTaken(f"`{command.written[:LONGEST]}` may be a different program from `{command.program}`")
    if terms.privileged is not None and command.is_privileged is not terms.privileged:
        return False
    if terms.commands and not _is_spelled(command, terms):
        return False
    operands = command.operands
    if not all(any(each is None or pattern.occurs(each) for each in operands) for pattern in terms.operands):
        return False
    if terms.options and not command.may_have_option(*terms.options):
        return False
    if terms.without_options and command.may_have_option(*terms.without_options):
        return False
    if terms.runs is not None and terms.runs is not _is_listed(terms, part):
        return False
    if terms.ordinary is not None and _is_of_ordinary_files(terms, command) is not terms.ordinary:
        return False
    if terms.settings is not None and _changes_settings(terms, command) is not terms.settings:
        return False
    return terms.inside is None or _is_inside(terms.root, part) is terms.inside


def _is_closed(terms: ReadTerms, part: Part) -> bool:
    """Whether everything in a command is known before it runs. `git` follows the settings of its folder."""
    command = part.value
    if command.program == "git" and (part.is_moved or not {"", terms.root}.issuperset(command.directories or "?")):
        return False
    return command.is_literal


def _is_listed(terms: ReadTerms, part: Part) -> bool:
    command = part.value
    if command.files_written or command.files_read:
        return False
    fitting = [line for line in terms.run_lines if line.fits(command, may_be_elsewhere=part.is_moved)]
    return any(
        not terms.ordinary_names or all(_is_file_or_folder(each, terms) for each in line.paths_of(command))
        for line in fitting
    )


def _is_file_or_folder(path: str, terms: ReadTerms) -> bool:
    return path == "." or path.endswith("/") or _is_ordinary(path.partition("::")[0], terms)


def _is_of_ordinary_files(terms: ReadTerms, command: Any) -> bool:
    """Whether a command shows and changes ordinary files only."""
    form = command.form
    if form is None or not all(_is_ordinary(each, terms) for each in form.shown):
        return False
    return all(each.endswith("/") or _is_ordinary(each, terms) for each in form.changed)


def _changes_settings(terms: ReadTerms, command: Any) -> bool:
    """Whether a command may change a file that programs obey or run."""
    changed = None if command.form is None else command.from_start(command.form.changed)
    return changed is None or any(_is_setting(each, terms) for each in changed)


def _is_ordinary(path: str, terms: ReadTerms) -> bool:
    name = path.rpartition("/")[2]
    return any(fnmatchcase(name, each) for each in terms.ordinary_names)


def _is_setting(path: str, terms: ReadTerms) -> bool:
    """Whether a part of a path makes programs obey or run the file."""
    place = _place(terms, path)
    parts = unicodedata.normalize("NFKC", place.inside or place.path).casefold().split("/")
    return any(fnmatchcase(part, each.casefold()) for part in parts for each in terms.setting_names)


def _is_spelled(command: Any, terms: ReadTerms) -> bool:
    """Whether a pattern matches the whole command, and only the words of the command affect what it does."""
    if not command.is_of_system or (command.is_privileged and not terms.privileged):
        return False
    line = command.spelled
    return line is not None and any(pattern.occurs(line) for pattern in terms.commands)


def _is_inside(root: str, part: Part) -> bool | Literal["unknown"]:
    """Whether everything that a command may name, and the folder it runs in, is in a folder."""
    try:
        return not _outside(root, part)
    except (NotTaken, Unreadable):
        return "unknown"


def _outside(root: str, part: Part) -> list[str]:
    """Return what a command names outside of a folder. Raises NotTaken or Unreadable if this is unknown."""
    from bylaw.reading.path import resolve_path

    paths = paths_of(part)
    here = [each for each in part.value.directories or () if each]
    return [path for path in (*here, *paths) if not resolve_path(path, root).is_inside]


def paths_of(part: Part) -> list[str]:
    """Return the words in a command that may name files, relative to its folder. Raises NotTaken if a word is
    unknown.
    """
    command = part.value
    if command.paths is None:
        raise NotTaken("a word of the command or its working folder is unknown until the command runs")
    if part.is_moved and not all(path.startswith("/") for path in command.paths):
        raise NotTaken("an earlier command may have changed the folder; use absolute paths")
    return list(command.paths)


def _of_command(part: Part, action: Action, field: str) -> Any:
    command = part.value
    match field:
        case "outside" if action.reads is not None:
            return _outside(action.reads.root, part)
        case "privileged":
            return command.is_privileged
        case "paths":
            return paths_of(part)
        case "words":
            return [word.text for word in command.words]
        case "files_written" | "files_read":
            words = getattr(command, field)
            return command.from_start(word.text for word in words) if all(word.is_exact for word in words) else None
        case "shown":
            return None if command.form is None else list(command.form.shown)
        case "operands":
            return None if None in command.operands else list(command.operands)
        case _:
            return getattr(command, field)


def _of_part(part: Part, action: Action, field: str) -> Any:
    if part.kind == "shell":
        return _of_command(part, action, field)
    if part.kind == "path" and action.reads is not None:
        place = _place(action.reads, part.value)
        return place.is_inside if field == "inside" else place.path
    return part.value.is_private if field == "private" else getattr(part.value, field)


def _place(terms: ReadTerms, path: str) -> Any:
    from bylaw.reading.path import resolve_path

    return resolve_path(path, terms.root)


def _fits_path(terms: ReadTerms, part: Part, action: Action) -> bool:
    place = _place(terms, part.value)
    if terms.ordinary is not None and _is_ordinary(place.path, terms) is not terms.ordinary:
        return False
    if terms.settings is not None and _is_setting(part.value, terms) is not terms.settings:
        return False
    return terms.inside is None or place.is_inside is terms.inside


def _fits_url(terms: ReadTerms, part: Part, action: Action) -> bool:
    url = part.value
    query = unquote_plus(url.query)
    conditions = (
        (terms.scheme, url.scheme), (terms.host, url.host), (terms.path, url.path), (terms.query, query),
    )  # fmt: skip
    return all(pattern is None or (value is not None and pattern.occurs(value)) for pattern, value in conditions)


_FITS: Mapping[Kind, Any] = {
    "sql": _fits_statement,
    "shell": _fits_command,
    "path": _fits_path,
    "url": _fits_url,
}
