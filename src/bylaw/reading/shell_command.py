"""One command of a shell text: a program, its words and its files."""

import posixpath
import re

from msgspec import Struct

from bylaw.reading.shell_programs import FOLDERS, only_reads
from bylaw.reading.shell_word import Word

_PRIVILEGED = frozenset({"sudo", "doas", "su", "pkexec", "runuser"})
_STAYS_BELOW = re.compile(
    r"/?(?:[\w@%+,:=-][\w@%+,.:=-]*/+|\./+|\.\./+)*(?:[\w@%+,:=*?\[\]-][\w@%+,.:=*?\[\]-]*(?:/+|$))+"
)
"""A pattern for names of files that cannot match `..`."""
_INSIDE = re.compile(r"(?:^:|(?<=[@=,])(?<!\s))((?:/|\.\.(?:/|$))\S*)")
"""A whole path, or one that goes up, in a word such as `@/etc/passwd`."""
_REMOTE_HELPER = re.compile(r"[a-z]+::")
"""Of `git`, as in `ext::command`."""
_FILE_URL = re.compile(r"(?i)file:(?://[^/\s]*)?(/\S*)")


class Command(Struct, frozen=True):
    """One program that may be run, or a redirection without one (`program` is empty)."""

    program: str
    """Its name without a folder: `rm` for `/bin/rm`, `\\rm`, `busybox rm` and `find -delete`."""
    written: str = ""
    """Its name as the text spells it, without quotes."""
    words: tuple[Word, ...] = ()
    """What comes after it."""
    assignments: tuple[tuple[str, Word], ...] = ()
    """Variables set for it, or by it if it is only that."""
    files_read: tuple[Word, ...] = ()
    """What is redirected into it."""
    files_written: tuple[Word, ...] = ()
    """What it is redirected to; never `/dev/null`, `/dev/stdout` or `/dev/stderr`."""
    wrappers: tuple[str, ...] = ()
    """Programs that run it, outermost first: `sudo`, `env`, `xargs`, `sh`."""
    directories: frozenset[str] | None = frozenset({""})
    """The folders it may run in, as `cd` before it says, relative to where the text began; None if not known."""
    has_input: bool = False
    """Whether its input is a pipe, a file or a text of the command."""
    line: int = 1

    @property
    def is_of_system(self) -> bool:
        """Whether it is the program of its name that the system finds: no folder is given, or one of the system's."""
        return "/" not in self.written or posixpath.normpath(posixpath.dirname(self.written)) in FOLDERS

    @property
    def is_privileged(self) -> bool:
        """Whether it runs as another user."""
        return any(wrapper in _PRIVILEGED for wrapper in self.wrappers)

    @property
    def options(self) -> tuple[str, ...]:
        """Its words that begin with a hyphen, up to `--`."""
        return tuple(word.text for word in self._before_dashes() if word.is_exact and _is_option(word.text))

    @property
    def operands(self) -> tuple[str | None, ...]:
        """Its other words, None for one that is not known; also values of options that are words of their own."""
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
        """Whatever its words may name as files, seen from where the text began; None if one is not known.

        Operands, values that options carry, and files redirected; patterns as they are written.
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
        """Whether an option of these names may be among its words: `-f`, also in `-rf`; `--force`, also as `--forc`."""
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
        """Whether it may change anything: true for every program and option that is not known to only read."""
        return not only_reads(self)


def _named_in(text: str) -> list[str]:
    """The paths a word may name: itself, or what an option or `name=` carries."""
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
