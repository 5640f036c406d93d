"""Programs that run another program, and the words with which they name it."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from bylaw.reading.shell_programs import GIT_KEYS
from bylaw.reading.shell_word import Word
from bylaw.reading.unreadable import Unreadable

if TYPE_CHECKING:
    from bylaw.reading.shell_programs import Command

UNKNOWN = Word("", "many")


class Inner(Struct, frozen=True):
    """The command that a wrapper runs, as words or as text for a shell."""

    commands: tuple[tuple[Word, ...], ...] = ()
    text: str | None = None
    assignments: tuple[tuple[str, Word], ...] = ()
    keeps: bool = False
    """Whether the wrapper itself has an effect."""
    own: tuple[Word, ...] | None = None
    """The words that the wrapper keeps. None if it keeps all of them."""
    feeds: bool = False
    """Whether the inner program gets words or input from another source."""
    is_elsewhere: bool = False
    """Whether the inner program runs in an unknown folder."""


_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_PREFIXES: dict[str, tuple[str, str]] = {
    # Options without a value, then options with a value. Short options are listed by letter. Long options are unknown.
    "sudo": ("AbEHkKnPSB", "ughpCrtTU"),
    "doas": ("nsL", "uC"),
    "nice": ("", "n"),
    "nohup": ("", ""),
    "time": ("p", ""),
    "stdbuf": ("", "ioe"),
    "setsid": ("cfw", ""),
    "ionice": ("t", "cn"),
    "builtin": ("", ""),
    "exec": ("cl", "a"),
    "pkexec": ("", ""),
}


def unwrap(command: "Command") -> Inner | None:
    """Return the command that a wrapper runs, or None if the program is not a wrapper. Raises `Unreadable` if this is
    uncertain.
    """
    name, words = command.program, command.words
    if name in _SPECIAL:
        return _SPECIAL[name](command)
    if name in _PREFIXES:
        bare, valued = _PREFIXES[name]
        rest = _after_options(name, words, bare, valued)
        if name == "exec" and not rest:
            return None
        return Inner((_program(name, rest),), keeps=name == "nohup")
    return None


def _after_options(name: str, words: Sequence[Word], bare: str, valued: str) -> tuple[Word, ...]:
    at = 0
    while at < len(words):
        text = _exact(name, words[at])
        if text == "--":
            return tuple(words[at + 1 :])
        if not text.startswith("-") or text == "-":
            return tuple(words[at:])
        if text.startswith("--") or not set(text[1:]) <= set(bare + valued) | set("0123456789"):
            if len(text) < 3 or text[1] not in valued or text[1] == "-":
                raise Unreadable(f"`{name}` with the option `{text[:40]}`")
            at += 1
        elif text[-1] in valued and not set(text[1:-1]) & set(valued):
            at += 2
        elif set(text[1:]) & set(valued) and text[1] not in valued:
            raise Unreadable(f"`{name}` with the option `{text[:40]}`")
        else:
            at += 1
    return ()


def _exact(name: str, word: Word) -> str:
    if not word.is_exact:
        raise Unreadable(f"the command that `{name}` runs is unknown until it runs")
    return word.text


def _program(name: str, words: Sequence[Word]) -> tuple[Word, ...]:
    if not words:
        raise Unreadable(f"`{name}` without a program")
    return tuple(words)


def _sudo(command: "Command") -> Inner:
    rest = _after_options(command.program, command.words, *_PREFIXES["sudo"])
    return _env_rest(command.program, rest)


def _env(command: "Command") -> Inner | None:
    words = command.words
    rest: tuple[Word, ...] = _after_options("env", words, "i0v", "u")
    if not rest:
        return None
    return _env_rest("env", rest)


def _env_rest(name: str, rest: Sequence[Word]) -> Inner:
    assigned: list[tuple[str, Word]] = []
    at = 0
    while at < len(rest) and (found := _ASSIGNMENT.fullmatch(_exact(name, rest[at]))) is not None:
        assigned.append((found[1], Word(found[2])))
        at += 1
    if at == len(rest):
        return Inner((), assignments=tuple(assigned), keeps=True)
    return Inner((tuple(rest[at:]),), assignments=tuple(assigned))


def _timeout(command: "Command") -> Inner:
    rest = _after_options("timeout", command.words, "fpv", "ks")
    if not rest or not re.fullmatch(r"[0-9.]+[smhd]?", _exact("timeout", rest[0])):
        raise Unreadable("`timeout` without a time")
    return Inner((_program("timeout", rest[1:]),))


def _command(command: "Command") -> Inner | None:
    if command.words and command.words[0].is_exact and command.words[0].text in ("-v", "-V"):
        return None
    return Inner((_program("command", _after_options("command", command.words, "p", "")),))


def _su(command: "Command") -> Inner:
    words = list(command.words)
    at = next((at for at, word in enumerate(words) if word.is_exact and word.text in ("-c", "--command")), None)
    others = [word for index, word in enumerate(words) if at is None or index not in (at, at + 1)]
    known = all(word.is_exact and (word.text in ("-", "-l") or not word.text.startswith("-")) for word in others)
    if at is None or at + 1 >= len(words) or not known or len(others) > 2:
        raise Unreadable("`su` without `-c`")
    return Inner(text=_exact("su", words[at + 1]), is_elsewhere=any(word.text in ("-", "-l") for word in others))


def _shell(command: "Command") -> Inner | None:
    """Read `sh -c text`. A shell that reads commands from its input is not followed. A script is a separate program."""
    name, words = command.program, command.words
    for at, word in enumerate(words):
        text = _exact(name, word)
        if re.fullmatch(r"-[aefhuvxlmn]*c", text):
            if at + 1 >= len(words):
                raise Unreadable(f"`{name} -c` without a command")
            inner = _exact(name, words[at + 1])
            if command.wrappers and command.wrappers[-1] in ("xargs", "find"):
                raise Unreadable(f"a command for `{name}` that `{command.wrappers[-1]}` completes")
            return Inner(text=inner)
        if not text.startswith(("-", "+")):
            return None
        if text not in ("-e", "-u", "-x", "-ex", "-eu", "-eux", "-l"):
            raise Unreadable(f"`{name}` with the option `{text[:40]}`")
    raise Unreadable(f"`{name}` runs the commands that it reads")


def _xargs(command: "Command") -> Inner:
    rest: list[Word] = list(command.words)
    mark = ""
    while rest and rest[0].is_exact and rest[0].text.startswith("-") and len(rest[0].text) > 1:
        text = rest.pop(0).text
        if text in ("-I", "-n", "-P", "-L", "-d", "-s", "-E", "-a"):
            if not rest:
                raise Unreadable(f"`xargs {text}` without a value")
            value = _exact("xargs", rest.pop(0))
            mark = value if text == "-I" else mark
        elif text.startswith(("-I", "--replace=")):
            mark = text.removeprefix("-I").removeprefix("--replace=")
        elif not _XARGS_OPTION.fullmatch(text):
            raise Unreadable(f"`xargs` with the option `{text[:40]}`")
    if not rest:
        rest = [Word("echo")]
    if mark and mark in rest[0].text:
        raise Unreadable("`xargs` that runs the commands that it reads")
    filled = [Word(word.text, "many") if mark and mark in word.text else word for word in rest[1:]]
    return Inner(((rest[0], *filled, UNKNOWN),), feeds=True)


_XARGS_OPTION = re.compile(
    r"-[0rtx]+|-0?[nPLs]\d+|-d.|-d\\\w+|--null|--no-run-if-empty|--verbose|--(?:max-args|max-procs|max-lines)=\d+|--delimiter=.+"
)


def _busybox(command: "Command") -> Inner:
    return Inner((_program(command.program, command.words),))


_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


def _find(command: "Command") -> Inner | None:
    words = list(command.words)
    found: list[tuple[Word, ...]] = []
    own: list[Word] = []
    places = [word for word in words if not word.may_be_option]
    if any(word.kind in ("one", "many") and word.may_be_option for word in words):
        raise Unreadable("`find` with words that are unknown until it runs")
    at = 0
    while at < len(words):
        text = words[at].text if words[at].is_exact else ""
        if text == "-delete":
            found.append((Word("rm"), Word("-r"), *([Word(places[0].text, "many")] if places else []), UNKNOWN))
        elif text in _FIND_RUNS:
            end = next(
                (to for to in range(at + 1, len(words)) if words[to].is_exact and words[to].text in (";", "+")), None
            )
            if end is None or end == at + 1:
                raise Unreadable(f"`find {text}` without an end")
            inner = [word if "{}" not in word.text else Word(word.text, "many") for word in words[at + 1 : end]]
            found.append(tuple(inner))
            at = end
        else:
            own.append(words[at])
        at += 1
    if not found:
        return None
    is_elsewhere = any(word.text in ("-execdir", "-okdir") for word in words)
    return Inner(tuple(found), keeps=True, own=tuple(own), feeds=True, is_elsewhere=is_elsewhere)


def _git(command: "Command") -> None:
    """Check a `git` command. Settings on the command line can make any `git` command run anything."""
    words = command.words
    for at, word in enumerate(words):
        if not word.is_exact:
            raise Unreadable("`git` with a command that is unknown until it runs")
        if not word.text.startswith("-"):
            if at and words[at - 1].text in ("-C", "-c", "--git-dir", "--work-tree", "--namespace"):
                continue
            break
        if word.text == "-c" and at + 1 < len(words):
            key = _exact("git -c", words[at + 1]).partition("=")[0].lower()
            if key not in GIT_KEYS:
                raise Unreadable(f"`git -c {key[:40]}` can change what the command does")
        elif word.text.startswith(("--config-env", "--exec-path=")) or (word.text[:2] == "-c" and word.text != "-c"):
            raise Unreadable(f"`git {word.text[:40]}` can change what the command does")


_SPECIAL: dict[str, Callable[["Command"], Inner | None]] = {
    "sudo": _sudo,
    "doas": _sudo,
    "env": _env,
    "timeout": _timeout,
    "gtimeout": _timeout,
    "command": _command,
    "su": _su,
    "runuser": _su,
    "xargs": _xargs,
    "gxargs": _xargs,
    "busybox": _busybox,
    "toybox": _busybox,
    "find": _find,
    "gfind": _find,
    "git": _git,
    **dict.fromkeys(["sh", "bash", "dash", "ash"], _shell),
}
