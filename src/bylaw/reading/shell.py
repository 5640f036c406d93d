"""Parses a shell text into a list of simple commands, each a program with its words and redirected files.

The grammar is an allowlist: words and quotes, `NAME=value` before a program, redirections to files, and the operators
`;`, `&&`, `||`, `|` and the end of a line. Anything else is `Unreadable`, such as loops, groups, substitutions,
here-documents, functions, background jobs, and programs that run other programs. So is text that interactive shells
read differently: `!` may insert an earlier command, and zsh may read a comment as words.
"""

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from bylaw.reading.shell_command import Command, Word
from bylaw.reading.shell_forms import check_form, unwrap
from bylaw.reading.unreadable import Unreadable

__all__ = ["Command", "Word", "read_shell"]

MAX_CHARACTERS = 50_000
MAX_FOLDERS = 8
"""The maximum number of folders in which a command may run."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BLANK = re.compile(r"(?:[ \t]|(?<=[ \t])\\\n)+")
_COMMENT = re.compile(r"#[\w \t.,:/+-]*(?=\n|\Z)")
"""Matches a comment without signs. An interactive zsh takes `#` for a program and the other words for arguments."""
_OPERATOR = re.compile(r"&&|\|\||;(?!;)|\|(?!&)|\n")
_REDIRECT = re.compile(r"[0-9]?(>>|>\||>|<)(?![<>&(|])[ \t]*")
_COPY = re.compile(r"[0-9]?>&[0-9](?=[ \t\n;|]|\Z)")
"""Matches a redirection to an open file, such as `2>&1`."""
_PIECE = re.compile(
    r"(?P<plain>[\w.,:@%+=/-]+)"
    r"|'(?P<single>(?:[^'\\]|\\[^'])*)'"
    r'|"(?P<double>(?:[^"\\$`!]|!(?= )|\\[^\n]|\$(?=")|\$[A-Za-z_][A-Za-z0-9_]*|\$\{[A-Za-z_][A-Za-z0-9_]*\})*)"'
    r"|\\(?P<escaped>[^\w\s])"
    r"|(?P<inner>(?<=[\w./@~^-])[~^]|(?<=[^\s;|<>&])\#)"
    r"|(?P<unknown>[*?\[\]~^]|\$[A-Za-z_][A-Za-z0-9_]*|\$\{[A-Za-z_][A-Za-z0-9_]*\})"
)
"""Matches a part of a word. An `unknown` part is one that the shell replaces: a pattern, a variable or a home
folder.
"""
_IN_DOUBLE = re.compile(r'\\(["\\$`])|(\$[A-Za-z_{])')
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_SILENT = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr"})


def read_shell(text: str) -> tuple[Command, ...]:
    """Return the commands that `text` may run, in order.

    Raises `Unreadable` if the commands are uncertain. Takes less than 0.2 ms for a line.
    """
    if len(text) > MAX_CHARACTERS:
        raise Unreadable(f"the command has more than {MAX_CHARACTERS:,} characters")
    if (bad := _CONTROL.search(text)) is not None:
        raise Unreadable(f"the text contains the control character U+{ord(bad.group()):04X}")
    if any(each not in " \t\n" and (each.isspace() or not each.isprintable()) for each in text):
        raise Unreadable("the text contains a space or an invisible character that shells read differently")
    folders = _Folders()
    found: list[Command] = []
    for each in _Scanner(text).commands():
        command = replace(_read(each), directories=folders.here)
        if command.program == "cd" and (each.is_piped or each.words[0][1] != Word("cd")):
            raise Unreadable("`cd` that may run in another process", line=each.line)
        folders.follow(command, each.after)
        found.append(command)
    if not found:
        raise Unreadable("there is no command")
    is_literal = all(each.is_literal for each in found)
    return tuple(found) if is_literal else tuple(replace(each, is_literal=False) for each in found)


class _Simple(Struct):
    """A command as it is written."""

    line: int
    words: list[tuple[str, Word]]
    """Each word, with its text in the source."""
    files_read: list[Word]
    files_written: list[Word]
    after: str = ""
    """The operator after the command. Empty at the end of the text."""
    is_piped: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.words or self.files_read or self.files_written)


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def commands(self) -> Iterator[_Simple]:
        here, before = self._begin(), ""
        while self.at < len(self.text):
            if (operator := self._take(_OPERATOR)) is None:
                is_new = here.is_empty and before not in ("&&", "||", "|")
                if not (is_new and self._take(_COMMENT)):
                    self._part(here)
                continue
            here.after = operator[0]
            if not here.is_empty:
                here.is_piped = "|" in (before, here.after)
                yield here
                before = here.after
            elif here.after != "\n":
                raise self._fault(f"`{here.after}` without a command before it")
            here = self._begin()
        if not here.is_empty:
            here.is_piped = before == "|"
            yield here
        elif before in ("&&", "||", "|"):
            raise self._fault(f"`{before}` without a command after it")

    def _begin(self) -> _Simple:
        return _Simple(self.text.count("\n", 0, self.at) + 1, [], [], [])

    def _part(self, here: _Simple) -> None:
        """Read a blank, a redirection or a word."""
        if self._take(_BLANK) or self._take(_COPY):
            return
        if (redirect := self._take(_REDIRECT)) is None:
            start = self.at
            word, written = self._word(), self.text[start : self.at]
            if written.isdigit() and self.text[self.at : self.at + 1] in ("<", ">"):
                raise self._fault("a redirection with a number of several digits")
            here.words.append((written, word))
            return
        target = self._word()
        if redirect[1] == "<":
            here.files_read.append(target)
        elif not target.is_exact or target.text not in _SILENT:
            here.files_written.append(target)

    def _word(self) -> Word:
        start, parts, is_exact = self.at, list[str](), True
        while (piece := self._take(_PIECE)) is not None:
            value = piece[piece.lastgroup or 0]
            if piece.lastgroup == "double":
                is_exact = is_exact and not any(each[2] for each in _IN_DOUBLE.finditer(value))
                value = _IN_DOUBLE.sub(lambda each: each[1] or each[0], value)
            parts.append(value)
            is_exact = is_exact and piece.lastgroup != "unknown"
        written = self.text[start : self.at]
        if not written or written.startswith("="):
            raise self._fault(f"`{self.text[start : start + 20]}` is not part of a simple command")
        return Word("".join(parts)) if is_exact else Word(written, is_exact=False)

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        if (found := pattern.match(self.text, self.at)) is not None:
            self.at = found.end()
        return found

    def _fault(self, reason: str) -> Unreadable:
        return Unreadable(reason, line=self.text.count("\n", 0, self.at) + 1)


def _read(simple: _Simple) -> Command:
    """Return the command without the wrappers that only run it, such as `sudo` and `timeout`."""
    read, changed = tuple(simple.files_read), tuple(simple.files_written)
    if not simple.words:
        return Command("", files_read=read, files_written=changed, is_literal=_are_exact(read, changed))
    assignments: list[tuple[str, Word]] = []
    waiting, is_privileged, is_wrapped = simple.words, False, False
    while True:
        while waiting and (found := _ASSIGNMENT.match(waiting[0][0])) is not None:
            (_, word), waiting = waiting[0], waiting[1:]
            assignments.append((found[1], Word(word.text[found.end() :], word.is_exact)))
        if not waiting:
            raise Unreadable("a variable that later commands may use", line=simple.line)
        (_, program), *rest = waiting
        command = Command.of(program, tuple(word for _, word in rest), tuple(assignments))
        if (length := unwrap(command)) is None:
            break
        is_privileged = is_privileged or command.program == "sudo"
        is_wrapped = is_wrapped or command.program in ("env", "sudo")
        waiting = waiting[-length:]
    check_form(command)
    values = tuple(value for _, value in assignments)
    return replace(
        command,
        files_read=read,
        files_written=changed,
        is_privileged=is_privileged,
        is_literal=not is_wrapped and _are_exact(command.words, values, read, changed),
    )


def _are_exact(*words: tuple[Word, ...]) -> bool:
    return all(each.is_exact for group in words for each in group)


class _Folders:
    """The folders in which commands may run. None if unknown."""

    def __init__(self) -> None:
        self.here: frozenset[str] | None = frozenset({""})
        """The folders in which the next command runs if all previous commands in its `&&` chain succeed."""
        self._reached = self.here
        self._is_chain = True
        """Whether the commands of the statement so far are joined only by `&&`."""

    def follow(self, command: Command, after: str) -> None:
        if command.program == "cd":
            words = [each for each in command.words if each.text != "--"]
            target = words[0].text if len(words) == 1 and words[0].is_exact else ""
            if self.here is None or not target or target.startswith(("-", "~")):
                self.here = self._reached = None
            else:
                changed = (target if target[0] == "/" or not each else f"{each}/{target}" for each in self.here)
                self.here = frozenset(changed)
        if self.here is not None and self._reached is not None:
            self._reached |= self.here
            self._reached = self._reached if len(self._reached) <= MAX_FOLDERS else None
        self._is_chain = after in (";", "\n") or (self._is_chain and after == "&&")
        if after != "&&" or not self._is_chain:
            self.here = self._reached
