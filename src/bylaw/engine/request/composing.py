"""The links, addresses and account numbers in a text that the agent wrote."""

import re
from collections.abc import Callable, Iterator, Sequence

from bylaw.engine.request.allowance import Source, fetches
from bylaw.engine.request.naming import Naming
from bylaw.engine.request.saying import Saying
from bylaw.engine.request.values import is_code
from bylaw.engine.request.view import View
from bylaw.facts.provenance import plain_link
from bylaw.text.identifier import identifiers

_LINK = re.compile(r"(?:https?://|www\.)[^\s<>\"')\]]+", re.IGNORECASE)
_TRIM = ".,;:!?'\"()[]*_`"


def strange_name(
    text: str,
    sources: Sequence[Source],
    view: View,
    naming: Naming,
    saying: Saying,
    is_approved: Callable[[str], bool],
) -> str:
    """A link, an address or a long code in a text that neither the user said nor its sources show; else empty.

    A link of an earlier call that the user asked for may be named. A page that was opened is no source of links: it may
    not send people to another.
    """
    pages = {name for name, tool in view.tools.items() if fetches(tool)}
    for name in _names_in(text):
        is_link = _LINK.match(name) is not None
        if saying.is_quoted(name) or (is_link and is_approved(name)):
            continue
        shown_by = [source for source in sources if not is_link or source.tool not in pages]
        sights = view.sights(plain_link(name))
        if not any(naming.is_of(source, sight, name) for sight in sights for source in shown_by):
            return name
    return ""


def _names_in(text: str) -> Iterator[str]:
    yield from (link.rstrip(_TRIM) for link in _LINK.findall(text))
    for name in identifiers(text):
        if is_code(name) or ("@" in name and not _LINK.match(name)):
            yield name
