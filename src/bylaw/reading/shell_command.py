"""A command of a shell text: a program with its words and files."""

import posixpath
import re
import shlex

from msgspec import Struct

from bylaw.reading.shell_programs import FOLDERS, is_well_known, only_reads
from bylaw.reading.shell_word import Word

_PRIVILEGED = frozenset({"sudo", "doas", "su", "pkexec", "runuser"})
_STAYS_BELOW = re.compile(
    r"/?(?:[\w@%+,:=-][\w@%+,.:=-]*/+|\./+|\.\./+)*(?:[\w@%+,:=*?\[\]-][\w@%+,.:=*?\[\]-]*(?:/+|$))+"
)
"""Matches file name patterns that cannot match `..`."""
_INSIDE = re.compile(r"(?:^:|(?<=[@=,])(?<!\s))((?:/|\.\.(?:/|$))\S*)")
"""Matches an absolute path, or one that goes up, in a word such as `@/etc/passwd`."""
_REMOTE_HELPER = re.compile(r"[a-z]+::")
"""Matches a remote helper of `git`, such as `ext::command`."""
_FILE_URL = re.compile(r"(?i)file:(?://[^/\s]*)?(/\S*)")


class Command(Struct, frozen=True):
    """A program that may run, or a redirection without one (`program` is empty)."""

    program: str
    r"""The program's name without a folder: `rm` for `/bin/rm`, `\rm`, `busybox rm` and `find -delete`."""
    written: str = ""
    """The program's name as written, without quotes."""
    words: tuple[Word, ...] = ()
    """The words after the program."""
    assignments: tuple[tuple[str, Word], ...] = ()
    """Variables set for the program or, without a program, by the command."""
    files_read: tuple[Word, ...] = ()
    """Files redirected to the program."""
    files_written: tuple[Word, ...] = ()
    """Files to which output is redirected, without `/dev/null`, `/dev/stdout` and `/dev/stderr`."""
    wrappers: tuple[str, ...] = ()
    """Programs that run this one, outermost first: `sudo`, `env`, `xargs`, `sh`."""
    directories: frozenset[str] | None = frozenset({""})
    """The folders in which it may run after `cd`, relative to the start; None if unknown."""
    has_input: bool = False
    """Whether the input is a pipe, a file or a text of the command."""
    is_repeated: bool = False
    """Whether it may run more than once, or not at all: in a loop, or for what another program finds."""
    line: int = 1

    @property
    def is_of_system(self) -> bool:
        """Whether the system's own program is meant: no folder is given, or one of the system's."""
        return "/" not in self.written or posixpath.normpath(posixpath.dirname(self.written)) in FOLDERS

    @property
    def is_privileged(self) -> bool:
        """Whether the program runs as another user."""
        return any(wrapper in _PRIVILEGED for wrapper in self.wrappers)

    @property
    def spelled(self) -> str | None:
        """The program and its words on one line, those with other signs in quotes.

        None if a word is not known before it runs, or if a variable may change what the program does.
        """
        if not all(is_well_known(name, value) for name, value in self.assignments):
            return None
        spelled = [self.program]
        for word in self.words:
            if word.kind == "glob" and not word.may_be_option and _STAYS_BELOW.fullmatch(word.text[:500]):
                spelled.append(word.text)
            elif word.is_exact:
                spelled.append(shlex.quote(word.text))
            else:
                return None
        return " ".join(spelled)

    @property
    def options(self) -> tuple[str, ...]:
        """The words that begin with a hyphen, up to `--`."""
        return tuple(word.text for word in self._before_dashes() if word.is_exact and _is_option(word.text))

    @property
    def operands(self) -> tuple[str | None, ...]:
        """The other words, with None for unknown ones. Includes option values that are separate words."""
        before = len(self._before_dashes())
        return tuple(
            word.text if word.is_exact else None
            for at, word in enumerate(self.words)
            if not (word.is_exact and (_is_option(word.text) if at < before else at == before and word.text == "--"))
        )

    def _before_dashes(self) -> tuple[Word, ...]:
        at = next((at for at, word in enumerate(self.words) if word.is_exact and word.text == "--"), len(self.words))
        return self.words[:at]

    @property
    def paths(self) -> tuple[str, ...] | None:
        """Return what the words may name as files, relative to the start; None if one is unknown.

        Includes operands, option values and redirected files. Patterns stay as written.
        """
        named: list[str] = []
        for word in (*self.words, *self.files_read, *self.files_written):
            if not (
                word.is_exact or (word.kind == "glob" and len(word.text) < 500 and _STAYS_BELOW.fullmatch(word.text))
            ):
                return None
            named += _named_in(word.text)
        for _, value in self.assignments:
            if not value.is_exact:
                return None
            named += [each for each in _named_in(value.text) if each.startswith("/") or ".." in each]
        if self.directories is None or any(_REMOTE_HELPER.match(each) for each in named):
            return None
        return tuple(posixpath.join(folder, each) for each in named for folder in sorted(self.directories))

    def may_have_option(self, *names: str) -> bool:
        """Whether one of these options may be among the words: `-f`, also in `-rf`; `--force`, also as `--forc`."""
        for word in self._before_dashes():
            if not word.is_exact:
                if word.may_be_option:
                    return True
                continue
            for name in names:
                if name.startswith("--"):
                    given = word.text.partition("=")[0]
                    if len(given) > 2 and name.startswith(given):
                        return True
                elif _is_option(word.text) and not word.text.startswith("--") and name[1:] in word.text[1:]:
                    return True
        return False

    @property
    def writes(self) -> bool:
        """Whether the command may change something. True unless program and options are known to only read."""
        return not only_reads(self)


def _named_in(text: str) -> list[str]:
    """Return the paths that a word may name: itself, or the value of an option or of `name=`."""
    _, equals, value = text.partition("=")
    inside = [found[1] for found in _INSIDE.finditer(text)] + [found[1] for found in _FILE_URL.finditer(text)]
    if not _is_option(text):
        named = [text, value] if value else [text]
    else:
        carried = [text[at:] for sign in ("/", "..", "~") if (at := text.find(sign)) > 0]
        if carried and not text.startswith("--"):
            carried.append(text[2:])
        named = [value] if equals and value else [each for each in carried if each]
    return [*named, *(each for each in dict.fromkeys(inside) if each not in named)]


def _is_option(text: str) -> bool:
    return len(text) > 1 and text[0] == "-" and text != "--"
