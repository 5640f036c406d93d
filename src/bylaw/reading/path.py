"""Determines whether a path leads into a folder or out of it."""

import os
import re
import unicodedata
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from msgspec import Struct

from bylaw.reading.unreadable import Unreadable

MAX_CHARACTERS = 4096


class Place(Struct, frozen=True):
    """The location to which a path leads."""

    path: str
    """The whole path, with `/` as the separator and without `.` and `..`."""
    inside: str | None
    """The path below the root, or `.` for the root itself. None if the path is or may be outside the root."""

    @property
    def is_inside(self) -> bool:
        return self.inside is not None


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_WINDOWS_ROOT = re.compile(r"(?:[A-Za-z]:/|//[^/]+/[^/]+(?:/|$))")
_WINDOWS_DEVICE = re.compile(r"(?i)(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:[ .:].*)?")
_FILE_URL = re.compile(r"(?i)file:")
_ESCAPED = re.compile(r"%(?![0-9A-Fa-f]{2})")


_REREAD = re.compile(r"\$[A-Za-z_{(]|%(?:2[eEfF]|5[cC]|00|25)|[,;:|](?=[/~]|\.\.)")


def check_argument(text: str, root: str) -> None:
    """Raise `Unreadable` if a tool may expand, decode or split a path before using it."""
    is_posix = _style_of(root) == "posix"
    begin = 5 if _FILE_URL.match(text) else 0 if is_posix else 2
    if (found := _REREAD.search(text, begin)) is not None:
        raise Unreadable(f"`{found.group()}` in the path, which some tools expand, decode or split")
    if "\\" in text and is_posix:
        raise Unreadable("a backslash in the path, which some tools treat as a separator")
    normal = unicodedata.normalize("NFKC", text)
    if any(normal.count(sign) != text.count(sign) for sign in "/\\.~"):
        raise Unreadable("a letter in the path that some tools treat as a separator or a dot")


def resolve_path(
    text: str,
    root: str,
    cwd: str = "",
    *,
    style: Literal["posix", "windows"] | None = None,
    follow_links: bool = False,
) -> Place:
    """Resolve `text` relative to `cwd`. A relative `cwd` is relative to `root`.

    With `follow_links`, links are followed, and the folder must exist on this machine. Otherwise, paths are compared as
    text. The default style is that of `root`. Raises `Unreadable` if the text does not certainly name exactly one path.
    """
    style = style or _style_of(root)
    base = _steps(_plain(root, style), style, None)
    here = _steps(_plain(cwd, style), style, base) if cwd else base
    if not text:
        raise Unreadable("the path is empty")
    parts = _steps(_plain(_of_url(text, style), style), style, here)
    if follow_links:
        if style != _style_of(os.sep):
            raise Unreadable(f"symbolic links in a {style} folder cannot be followed here")
        parts, base = _followed(text, parts, here), _real(base)
    inside = parts[len(base) :] if _same(parts[: len(base)], base, style) else None
    return Place(_joined(parts), None if inside is None else "/".join(inside) or ".")


def _style_of(root: str) -> Literal["posix", "windows"]:
    if root.startswith("/") and not root.startswith("//"):
        return "posix"
    if _WINDOWS_ROOT.match(root.replace("\\", "/")):
        return "windows"
    raise ValueError(f"the root `{root}` is not an absolute path")


def _of_url(text: str, style: str) -> str:
    """Return the path of a file URL. Return any other text unchanged."""
    if not _FILE_URL.match(text):
        return text
    rest = text[5:].replace("\\", "/") if style == "windows" else text[5:]
    if "?" in rest or "#" in rest:
        raise Unreadable("a file URL with a query")
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host.lower() not in ("", "localhost") or not slash:
            raise Unreadable(f"a file URL of the host `{host[:60]}`")
        rest = "/" + path
    if not rest.startswith("/"):
        raise Unreadable("a file URL without a complete path")
    if _ESCAPED.search(rest):
        raise Unreadable("a file URL with a percent sign that does not begin an escape")
    plain = unquote(rest, errors="strict") if _is_utf8(rest) else ""
    if not plain or plain.count("/") != rest.count("/") or "\\" in plain or "%" in plain:
        raise Unreadable("a file URL that hides a separator")
    return plain[1:] if style == "windows" and re.match(r"/[A-Za-z]:/", plain) else plain


def _is_utf8(text: str) -> bool:
    try:
        unquote(text, errors="strict")
    except UnicodeDecodeError:
        return False
    return True


def _plain(text: str, style: str) -> str:
    if len(text) > MAX_CHARACTERS:
        raise Unreadable(f"the path has more than {MAX_CHARACTERS:,} characters")
    if (bad := _CONTROL.search(text)) is not None:
        raise Unreadable(f"the path contains the control character U+{ord(bad.group()):04X}")
    if any(not each.isprintable() or (each.isspace() and each != " ") for each in text):
        raise Unreadable("the path contains an invisible character")
    if text != text.strip() or any(name != name.strip() for name in text.split("/")):
        raise Unreadable("a name in the path begins or ends with a space, which tools may leave out")
    if text[:1] in ("[", "{", '"', "'"):
        raise Unreadable("the path begins like a list or a quoted string, and tools may read it as one")
    if text.startswith("~"):
        raise Unreadable("the path begins with `~`, but the home folder is unknown")
    return text.replace("\\", "/") if style == "windows" else text


def _steps(text: str, style: str, base: list[str] | None) -> list[str]:
    """Return the names in a path from the top down. The first name is the root itself: `/`, a drive or a share."""
    if style == "posix":
        parts = ["/"] if text.startswith("/") else list(base or ())
        names = text.split("/")
    else:
        parts, names = _windows(text, base)
    if not parts:
        raise ValueError(f"`{text}` is not an absolute path")
    for name in names:
        if name in ("", "."):
            continue
        if name == "..":
            del parts[max(len(parts) - 1, 1) :]
        else:
            parts.append(_name(name, style))
    return parts


def _windows(text: str, base: list[str] | None) -> tuple[list[str], list[str]]:
    if text.startswith(("//?/", "//./", "/??/")):
        raise Unreadable("a path of a device")
    if (root := _WINDOWS_ROOT.match(text)) is not None:
        return [root.group().rstrip("/").casefold()], text[root.end() :].split("/")
    if text.startswith("//"):
        raise Unreadable("a share without a name")
    if re.match(r"[A-Za-z]:", text):
        raise Unreadable("a path relative to the current folder of a drive")
    if text.startswith("/"):
        return list((base or [])[:1]), text.split("/")
    return list(base or ()), text.split("/")


def _name(name: str, style: str) -> str:
    if style == "posix":
        return name
    if ":" in name or any(each in name for each in '<>"|?*'):
        raise Unreadable(f"`{name[:60]}` is not the name of a file")
    if name[-1] in " ." or name[:1] == " " or re.fullmatch(r"[^.]*~[0-9]+(?:\.[^.]*)?", name):
        raise Unreadable(f"`{name[:60]}` is also the name of another file")
    if _WINDOWS_DEVICE.fullmatch(name):
        raise Unreadable(f"`{name[:60]}` is a device")
    return name


def _same(one: list[str], other: list[str], style: str) -> bool:
    if style == "posix":
        return one == other
    return [each.casefold() for each in one] == [each.casefold() for each in other]


def _joined(parts: list[str]) -> str:
    top, *rest = parts
    return top + "/".join(rest) if top.endswith("/") else "/".join(parts)


def _real(parts: list[str]) -> list[str]:
    real = Path(os.path.realpath(_joined(parts)))
    return list(real.parts)


def _followed(text: str, parts: list[str], here: list[str]) -> list[str]:
    """Return the path after following links. The operating system resolves a `..` after following the link before
    it.
    """
    whole = text if text.startswith("/") else f"{_joined(here)}/{text}"
    real = list(Path(os.path.realpath(whole)).parts)
    if _FILE_URL.match(text):
        real = _real(parts)
    return real
