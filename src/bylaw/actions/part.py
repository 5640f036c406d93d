"""A part of a call that a parser extracts, its values, and the conditions of actions on it.

The parsers are imported only if a pack uses them.
"""

import unicodedata
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Literal
from urllib.parse import unquote_plus

from msgspec import Struct

from bylaw.actions.action import Action, ReadTerms
from bylaw.actions.taking import Kind, NotTaken
from bylaw.reading import Unreadable

LONGEST = 200
"""The maximum length of a quoted part of a call in a message."""


class Part(Struct, frozen=True):
    """A part of a call: a statement, a command or an address found by a parser, or a page element."""

    kind: Kind
    argument: str
    value: Any
    words: str
    item: Mapping[str, Any] = {}
    """The item of a list argument that contains the part. Empty if there is none."""
    is_moved: bool = False
    """Whether a command may run outside the folder in which the shell started."""
    target: Any = None
    """The page element that the call targets."""


@lru_cache(maxsize=64)
def commands_in(text: str) -> tuple[Any, ...]:
    """Return the commands in a shell text. Raises Unreadable."""
    from bylaw.reading.shell import read_shell

    return read_shell(text)


def parts_in(terms: ReadTerms, text: str) -> Iterator[tuple[Any, str]]:
    """Yield the parts of an argument, each with a description for messages. Raises Unreadable."""
    match terms.kind:
        case "sql":
            from bylaw.reading.sql import read_sql

            for statement in read_sql(text, terms.dialect, terms.declared):
                yield statement, f"the statement `{statement.kind}`"
        case "shell":
            for command in commands_in(text):
                words = " ".join((command.program, *(each.text for each in command.words)))
                yield command, f"the command `{words[:LONGEST]}`"
        case "path":
            from bylaw.reading.path import check_argument

            check_argument(text, terms.root)
            yield text, f"the path `{text[:LONGEST]}`"
        case _:
            from bylaw.reading.url import read_url

            yield read_url(text), f"the address `{text[:LONGEST]}`"


def fits(terms: ReadTerms, part: Part, action: Action) -> bool:
    """Whether a part meets the conditions of an action. Raises NotTaken if this is undecided."""
    match part.kind:
        case "sql":
            return _fits_statement(terms, part, action)
        case "shell":
            return _fits_command(terms, part, action)
        case "path":
            return _fits_path(terms, part)
        case _:
            return _fits_url(terms, part)


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
    """Whether a command may match. A word that is unknown until the command runs may have any value."""
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
    """Whether the effect of a command is fully known before it runs. `git` also depends on the settings of its
    folder.
    """
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
    """Whether a command shows and changes only files with ordinary names."""
    form = command.form
    if form is None or not all(_is_ordinary(each, terms) for each in form.shown):
        return False
    return all(each.endswith("/") or _is_ordinary(each, terms) for each in form.changed)


def _changes_settings(terms: ReadTerms, command: Any) -> bool:
    """Whether a command may change a file whose content other programs run or treat as settings."""
    changed = None if command.form is None else command.from_start(command.form.changed)
    return changed is None or any(_is_setting(each, terms) for each in changed)


def _is_ordinary(path: str, terms: ReadTerms) -> bool:
    name = path.rpartition("/")[2]
    return any(fnmatchcase(name, each) for each in terms.ordinary_names)


def _is_setting(path: str, terms: ReadTerms) -> bool:
    """Whether a name in the path marks the file as one whose content programs run or treat as settings."""
    place = _place(terms, path)
    parts = unicodedata.normalize("NFKC", place.inside or place.path).casefold().split("/")
    return any(fnmatchcase(part, each.casefold()) for part in parts for each in terms.setting_names)


def _is_spelled(command: Any, terms: ReadTerms) -> bool:
    """Whether a pattern matches the whole command, and nothing but the command's words determines its effect."""
    if not command.is_of_system or (command.is_privileged and not terms.privileged):
        return False
    line = command.spelled
    return line is not None and any(pattern.occurs(line) for pattern in terms.commands)


def _is_inside(root: str, part: Part) -> bool | Literal["unknown"]:
    """Whether a command runs in a folder, and every path that it may name is in that folder."""
    try:
        return not _outside(root, part)
    except (NotTaken, Unreadable):
        return "unknown"


def _outside(root: str, part: Part) -> list[str]:
    """Return the paths outside a folder that a command names. Raises NotTaken or Unreadable if they are unknown."""
    from bylaw.reading.path import resolve_path

    paths = paths_of(part)
    here = [each for each in part.value.directories or () if each]
    return [path for path in (*here, *paths) if not resolve_path(path, root).is_inside]


def paths_of(part: Part) -> list[str]:
    """Return the words of a command that may name files, relative to its folder. Raises NotTaken if a word is
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


def value_of(part: Part, action: Action, field: str) -> Any:
    """Return the value of `$statement.FIELD`, `$command.FIELD`, `$path.FIELD` or `$url.FIELD`. None if unknown."""
    if part.kind == "shell":
        return _of_command(part, action, field)
    if part.kind == "path" and action.reads is not None:
        place = _place(action.reads, part.value)
        return place.is_inside if field == "inside" else place.path
    return part.value.is_private if field == "private" else getattr(part.value, field)


def _place(terms: ReadTerms, path: str) -> Any:
    from bylaw.reading.path import resolve_path

    return resolve_path(path, terms.root)


def _fits_path(terms: ReadTerms, part: Part) -> bool:
    place = _place(terms, part.value)
    if terms.ordinary is not None and _is_ordinary(place.path, terms) is not terms.ordinary:
        return False
    if terms.settings is not None and _is_setting(part.value, terms) is not terms.settings:
        return False
    return terms.inside is None or place.is_inside is terms.inside


def _fits_url(terms: ReadTerms, part: Part) -> bool:
    url = part.value
    query = unquote_plus(url.query)
    conditions = (
        (terms.scheme, url.scheme), (terms.host, url.host), (terms.path, url.path), (terms.query, query),
    )  # fmt: skip
    return all(pattern is None or (value is not None and pattern.occurs(value)) for pattern, value in conditions)
