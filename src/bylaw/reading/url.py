"""Parses a URL. Accepts only URLs that browsers and HTTP clients interpret in the same way."""

import ipaddress
import re
from collections.abc import Collection
from urllib.parse import unquote

from msgspec import Struct

from bylaw.reading.unreadable import Unreadable

MAX_CHARACTERS = 16_384
PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}


class Url(Struct, frozen=True):
    """The normalised parts of a URL."""

    scheme: str
    host: str
    """The host in lower case and ASCII (`xn--...`), without a final dot. An IPv6 address has no brackets."""
    port: int
    """The port in the URL or, without one, the scheme's default port."""
    path: str
    """The path without `.` and `..`. Letters, digits and `-._~` are unescaped."""
    query: str = ""
    fragment: str = ""

    @property
    def origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if PORTS.get(self.scheme) == self.port else f":{self.port}")

    @property
    def address(self) -> str:
        """The whole URL, normalised."""
        query, fragment = self.query and f"?{self.query}", self.fragment and f"#{self.fragment}"
        return self.origin + self.path + query + fragment

    @property
    def is_private(self) -> bool:
        try:
            address = ipaddress.ip_address(self.host)
        except ValueError:
            return "." not in self.host or self.host.rpartition(".")[2] in _PRIVATE_NAMES
        if isinstance(address, ipaddress.IPv6Address) and any(address in network for network in _CARRIERS):
            return True
        return not address.is_global

    def is_on(self, hosts: Collection[str]) -> bool:
        """Whether the host matches one of `hosts`.

        `example.com` matches only itself, and `*.example.com` matches all its subdomains.
        """
        return any(self._is_named(host.casefold().rstrip(".")) for host in hosts)

    def _is_named(self, host: str) -> bool:
        if host.startswith("*."):
            return self.host.endswith(host[1:]) and len(self.host) > len(host) - 1
        return self.host == host


_PRIVATE_NAMES = frozenset({"localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "arpa"})
_CARRIERS = tuple(
    ipaddress.IPv6Network(each) for each in ("::/96", "::ffff:0:0/96", "64:ff9b::/96", "2002::/16", "2001::/32")
)
"""IPv6 networks that contain public or private IPv4 addresses."""
_BAD = re.compile(
    r"[\x00-\x20\x7f-\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff\ufff0-\uffff<>\"`{}|\\^]"
)
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@]*)(?::([0-9]{1,5}))?")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)")


def read_url(text: str) -> Url:
    """Return the parts of an absolute URL with the scheme `http`, `https`, `ws`, `wss` or `ftp`.

    Raises `Unreadable` if clients may interpret the URL differently. User names, backslashes, spaces, octal addresses,
    addresses written as one number, and escaped separators are rejected.
    """
    if len(text) > MAX_CHARACTERS:
        raise Unreadable(f"the URL has more than {MAX_CHARACTERS:,} characters")
    if (bad := _BAD.search(text)) is not None:
        raise Unreadable(f"the character U+{ord(bad.group()):04X} in a URL")
    found = _URL.fullmatch(text)
    if found is None:
        raise Unreadable("it is not an absolute URL")
    scheme, authority, path, query, fragment = (part or "" for part in found.groups())
    scheme = scheme.lower()
    if scheme not in PORTS:
        raise Unreadable(f"the scheme `{scheme[:30]}`")
    if "@" in authority:
        raise Unreadable("a URL with a user name")
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        raise Unreadable(f"`{authority[:60]}` is not a host")
    port = int(parts[2]) if parts[2] else PORTS[scheme]
    if not 0 < port < 65536:
        raise Unreadable(f"the port {port}")
    return Url(scheme, _host(parts[1]), port, _path(path), query, fragment)


def _host(written: str) -> str:
    if written.startswith("["):
        try:
            return str(ipaddress.IPv6Address(written[1:-1]))
        except ValueError:
            raise Unreadable(f"`{written}` is not an address") from None
    host = _in_ascii(written.lower().removesuffix("."))
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise Unreadable(f"`{written[:60]}` is not a host name")
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            raise Unreadable(f"`{written[:60]}` is an address that clients read differently") from None
    return host


def _in_ascii(name: str) -> str:
    """Return the host name in ASCII. Rejects a name that could be mistaken for another name."""
    if len(name) > 253:
        raise Unreadable("the host name is too long")
    if name.isascii() and "xn--" not in name:
        return name
    try:
        host = name.encode("idna")
        people = host.decode("idna")
        if people.encode("idna") == host and (name.isascii() or people == name):
            return host.decode("ascii")
    except UnicodeError:
        pass
    raise Unreadable(f"`{name[:60]}` is not a host name, or could be mistaken for another one")


def _path(written: str) -> str:
    if "%" in _ESCAPE.sub("", written):
        raise Unreadable("a percent sign that does not begin an escape")
    plain = _ESCAPE.sub(_shortest, written)
    lowered = plain.lower()
    if "%2f" in lowered or "%5c" in lowered or "%00" in lowered or "%25" in lowered:
        raise Unreadable("an escaped separator in the path")
    steps: list[str] = []
    for name in plain.split("/")[1:]:
        if unquote(name) == "..":
            if steps:
                steps.pop()
        elif name != ".":
            steps.append(name)
    if plain.endswith(("/.", "/..")):
        steps.append("")
    return "/" + "/".join(steps)


def _shortest(found: re.Match[str]) -> str:
    character = chr(int(found[1], 16))
    return character if character in _UNRESERVED else found[0].upper()
