"""The commands that have a closed form. A command in a closed form names every file whose contents it shows.

A closed form consists of a program, then flags, some of which take a number, and then operands. A command with any
other word has no closed form.
"""

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from bylaw.reading.unreadable import Unreadable

if TYPE_CHECKING:
    from bylaw.reading.shell_command import Command, Word


class Form(Struct, frozen=True):
    shown: tuple[str, ...] = ()
    """The files whose contents the command shows or copies."""
    named: tuple[str, ...] = ()
    """The files and folders that the command names without showing their contents."""
    changed: tuple[str, ...] = ()
    """The files that the command creates, changes or moves."""

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.shown, *self.named, *self.changed)))


_FORMS = {
    # The flags, the flags that take a number, and the meaning of the operands.
    "cat": ("Abens", "", "shown"),
    "head": ("qv", "cn", "shown"),
    "tail": ("qv", "cn", "shown"),
    "diff": ("bBiqsuwy", "U", "shown"),
    "sort": ("bfnruV", "", "shown"),
    "grep": ("EFHchilnoqsvwx", "ABCm", "pattern"),
    "sed": ("nE", "", "pattern"),
    "cp": ("npv", "", "copied"),
    "mv": ("nv", "", "copied"),
    "mkdir": ("p", "", "folders"),
    "touch": ("", "", "changed"),
    "uniq": ("cdiu", "", "none"),
    "wc": ("clmw", "", "named"),
    "ls": ("1aAdFhlrRSt", "", "named"),
    "file": ("b", "", "named"),
    "stat": ("", "", "named"),
    "du": ("ahs", "d", "named"),
    "tree": ("ad", "L", "named"),
    "cd": ("", "", "named"),
    **dict.fromkeys(["echo", "which", "basename", "dirname"], ("", "", "text")),
    **dict.fromkeys(["pwd", "true", "false", "whoami", "date", ":"], ("", "", "none")),
}
_PLAIN = re.compile(r"[\w./][\w./@+,-]*")
_PRINTED = re.compile(r"(?:[0-9]+|\$|/[^/\\]+/)(?:,(?:[0-9]+|\$))?p")
"""Matches `sed` scripts that print lines."""
_REPLACED = re.compile(r"s/[^/\\\n]+/[^/\\\n]*/g?")
"""Matches `sed -i` scripts that replace text."""
_PLAIN_FORMAT = re.compile(r"(?!-)(?:[^%]|%%)*")
_NUMBER = re.compile(r"[+-]?[0-9]+")
_SETTINGS = frozenset([("-e",), ("-u",), ("-eu",), ("-o", "pipefail"), ("-euo", "pipefail"), ("-eo", "pipefail")])
_VERSIONS = frozenset(
    ["cargo", "git", "go", "java", "make", "node", "npm", "pip", "python", "python3", "ruby", "rustc", "uv"]
)

_FIND_VALUES = {
    **dict.fromkeys(["-name", "-iname", "-path", "-ipath"], re.compile(r"[^-].*")),
    **dict.fromkeys(["-maxdepth", "-mindepth"], re.compile(r"[0-9]+")),
    "-type": re.compile(r"[dfl]"),
}
_FIND_FLAGS = frozenset(["-not", "-o", "-a", "-print"])

_BRANCH = r"(?:HEAD|@|(?:origin/)?(?:main|master|develop))(?:[~^][0-9]*)*"
_REVISION = re.compile(rf"{_BRANCH}(?:\.\.\.?(?:{_BRANCH})?)?")
_STORED = re.compile(r"HEAD(?:[~^][0-9]*)*:([\w.][\w./@+-]*)")
_STATUS = frozenset(["-s", "-b", "-sb", "--short", "--branch", "--porcelain"])
_BRANCHES = frozenset(["-a", "-v", "-vv", "-r", "--list", "--all", "--show-current"])
_LISTS = frozenset(["--stat", "--name-only", "--name-status", "--numstat", "--shortstat", "--quiet"])
_LOG = frozenset(["--oneline", "--graph", "--decorate", "--all", "--no-merges", "--reverse"])
_PLAIN_GIT = frozenset(["--cached", "--staged", "-w"]) | _LISTS


_WRAPPERS = {
    # The options without a value, and the options with a value.
    "env": (frozenset({"-i"}), frozenset({"-u"})),
    "sudo": (frozenset({"-n", "-E", "-H"}), frozenset({"-u", "-g"})),
    "time": (frozenset({"-p"}), frozenset[str]()),
    "timeout": (frozenset({"--foreground"}), frozenset({"-k", "-s"})),
}
"""Programs that run another program, which is given in their words."""
_DURATION = re.compile(r"[0-9.]+[smhd]?")
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_ONLY_CLOSED = frozenset({"find", "sed", "set"})
"""Programs whose words may run commands, write files or set options. They are accepted only in a closed form."""
_GIT_OPTIONS = frozenset({"--no-pager", "--version"})
_GIT_SETTING = re.compile(r"(?i:color\.(?:ui|diff|status)|core\.quotepath|log\.showsignature|user\.(?:email|name))=.*")


def unwrap(command: "Command") -> int | None:
    """Return how many of the last words form the program that a wrapper runs. None if the program is not a wrapper."""
    if command.program not in _WRAPPERS:
        return None
    words, at = command.words, 0
    options, valued = _WRAPPERS[command.program]
    while at < len(words) and words[at].text.startswith("-"):
        if words[at].text not in options | valued or not command.is_of_system:
            raise Unreadable(f"`{command.program}` with the option `{words[at].text[:40]}`")
        at += 2 if words[at].text in valued else 1
    if command.program == "timeout":
        if at >= len(words) or not _DURATION.fullmatch(words[at].text):
            raise Unreadable("`timeout` without a time")
        at += 1
    if command.program == "env" and all(_ASSIGNED.match(word.text) for word in words[at:]):
        return None
    if at >= len(words) or not command.is_of_system:
        raise Unreadable(f"`{command.program}` runs a program that cannot be determined")
    return len(words) - at


def check_form(command: "Command") -> None:
    """Raise `Unreadable` if the words may do more than the program's name says."""
    program, words = command.program, command.words
    if program in _ONLY_CLOSED:
        is_known = all(word.is_exact for word in words) and _form(program, _texts(words)) is not None
    elif program == "printf":
        is_known = len(words) == 1 and words[0].is_exact and _PLAIN_FORMAT.fullmatch(words[0].text) is not None
    else:
        is_known = program != "git" or _has_plain_start(words)
    if not is_known:
        raise Unreadable(f"`{program}` with arguments that may run commands, write files or set variables")


def _has_plain_start(words: tuple["Word", ...]) -> bool:
    """Whether the options between `git` and its command cannot make `git` run another program."""
    texts = [word.text if word.is_exact else "-" for word in words]
    while texts and texts[0].startswith("-"):
        value = texts[1] if len(texts) > 1 else "-"
        is_setting = texts[0] == "-c" and _GIT_SETTING.fullmatch(value) is not None
        if texts[0] not in _GIT_OPTIONS and not is_setting and (texts[0] != "-C" or value == "-"):
            return False
        del texts[: 2 if texts[0] in ("-C", "-c") else 1]
    return True


def form_of(command: "Command") -> Form | None:
    """Return the closed form of a command, or None if it has none."""
    if not command.is_literal or command.assignments or not command.is_of_system:
        return None
    form = _form(command.program, _texts(command.words))
    read = tuple(word.text for word in command.files_read)
    written = tuple(word.text for word in command.files_written)
    if form is None or not _are_plain((*read, *written)) or any(each.startswith("/dev/") for each in read):
        return None
    return Form((*form.shown, *read), form.named, (*form.changed, *written))


def _texts(words: tuple["Word", ...]) -> tuple[str, ...]:
    return tuple(word.text for word in words)


def _form(program: str, words: tuple[str, ...]) -> Form | None:
    match program:
        case "":
            return Form()
        case "git":
            return _git(words)
        case "find":
            return _find(words)
        case "set":
            return Form() if words in _SETTINGS else None
        case "sed" if words[:1] == ("-i",):
            is_plain = _REPLACED.fullmatch("".join(words[1:2])) and _are_plain(words[2:])
            return Form(changed=words[2:]) if is_plain else None
        case _ if program in _VERSIONS:
            return Form() if words == ("--version",) else None
        case _:
            return _usual(program, words) if program in _FORMS else None


def _usual(program: str, words: tuple[str, ...]) -> Form | None:
    flags, numbered, kind = _FORMS[program]
    if kind == "text":
        return Form()
    operands = _operands(words, flags, numbered)
    if operands is None or any(each.startswith("-") for each in operands) or (kind == "none" and operands):
        return None
    if kind == "pattern":
        if not operands or (program == "sed" and not _PRINTED.fullmatch(operands[0])):
            return None
        operands = operands[1:]
    if not _are_plain(operands) or (kind == "copied" and len(operands) < 2):
        return None
    match kind:
        case "copied":
            *copied, target = operands
            if len(copied) > 1 or target == "." or target.endswith("/"):
                put = tuple(f"{target.rstrip('/')}/{each.rpartition('/')[2]}" for each in copied)
            else:
                put = (target,)
            # If the target is a folder, the copy keeps its name inside that folder.
            return Form(operands[:-1], changed=(*copied, *put))
        case "changed":
            return Form(changed=operands)
        case "folders":
            return Form(changed=tuple(f"{each.rstrip('/')}/" for each in operands))
        case "named":
            return Form(named=operands)
        case _:
            return Form(operands)


def _operands(words: tuple[str, ...], flags: str, numbered: str) -> tuple[str, ...] | None:
    """Return the words after the flags, or None if a flag is unknown."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        value = rf"(?:[{numbered}]?[0-9]+|(?P<waits>[{numbered}]))?" if numbered else "(?P<waits>(?!))?"
        if not flags or (found := re.fullmatch(rf"-(?=.)[{flags}]*{value}", words[at])) is None:
            return None
        at += 1
        if found["waits"]:
            if at == len(words) or not _NUMBER.fullmatch(words[at]):
                return None
            at += 1
    return words[at:]


def _are_plain(paths: tuple[str, ...]) -> bool:
    return all(_PLAIN.fullmatch(each) for each in paths)


def _find(words: tuple[str, ...]) -> Form | None:
    end = next((at for at, each in enumerate(words) if each.startswith("-")), len(words))
    waiting = list(words[end:])
    while waiting:
        name = waiting.pop(0)
        if name in _FIND_FLAGS:
            continue
        if name not in _FIND_VALUES or not waiting or not _FIND_VALUES[name].fullmatch(waiting.pop(0)):
            return None
    return Form(named=words[:end]) if _are_plain(words[:end]) else None


def _git(words: tuple[str, ...]) -> Form | None:
    name, rest = words[0] if words else "", words[1:]
    if words == ("--version",) or (name == "status" and _STATUS.issuperset(rest)):
        return Form()
    if name == "branch":
        return Form() if _BRANCHES.issuperset(rest) else None
    if name == "show" and len(rest) == 1 and (stored := _STORED.fullmatch(rest[0])) is not None:
        return Form((stored[1],))
    return _changes(name, rest) if name in ("log", "diff", "show") else None


def _changes(name: str, rest: tuple[str, ...]) -> Form | None:
    """Parse a command such as `git log` or `git diff`, with optional paths after `--`."""
    dashes = rest.index("--") if "--" in rest else len(rest)
    options = {each for each in rest[:dashes] if each.startswith("-")}
    paths = rest[dashes + 1 :]
    if name == "log":
        options = {each for each in options if each not in _LOG and not re.fullmatch(r"-n?[0-9]+", each)}
    shows_patch = "-p" in options or (name != "log" and not options & _LISTS)
    are_known = options <= _PLAIN_GIT | {"-p"} and _are_plain(paths)
    if not are_known or not all(_REVISION.fullmatch(each) for each in rest[:dashes] if not each.startswith("-")):
        return None
    if shows_patch:
        return Form(paths) if paths else None
    return Form(named=paths)
