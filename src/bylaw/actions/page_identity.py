"""Determines whether a call changes a page, and what a user's yes to the call covers: one element with its frame and
form, and the page as shown.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from bylaw.actions.page_state import (
    CONTROLS,
    FIELDS,
    FORMS,
    PageState,
    Targeted,
    filled_in,
    is_quiet,
    link_of,
    name_of,
    named_elements,
)
from bylaw.actions.taking import NotTaken
from bylaw.reading import Unreadable
from bylaw.reading.page import Element, Page
from bylaw.reading.url import read_url
from bylaw.trace.event import Call

_PASSING = frozenset(("active", "cursor"))
"""States of elements that change while a user only looks."""
_PARTS = frozenset(("dialog", "alertdialog", "main"))
_DIGITS = 20
"""The length of a fingerprint: 80 bits."""
_DIALOG = "### Modal state"
_LONGEST_DIALOG = 1000


def only_shows(page: Page, target: Targeted, arguments: Mapping[str, Any], *, names_host: bool) -> bool:
    """Whether a call certainly changes nothing. It follows a link to a page of the same host, or of one that the
    action names; it types into a text field; or it presses a key that moves the view.

    Any other act on a page could have any effect, whatever the element is called.
    """
    element, key = target.element, arguments.get("key") or arguments.get("keys")
    if page.is_in_frame(element):
        return False
    if element.role == "link":
        return _leads_on(page, element, any_host=names_host)
    if target.item:
        return element.role in FIELDS - {"combobox"}
    if key is not None and element.role not in FIELDS:
        # Space presses the focused control, and arrows choose another value.
        return element.role not in CONTROLS and is_quiet(key)
    return (key is not None or element.role in FIELDS) and not arguments.get("values")


def _leads_on(page: Page, element: Element, *, any_host: bool) -> bool:
    try:
        to, here = link_of(page, element), read_url(page.url)
    except (NotTaken, Unreadable):
        return False
    is_moving = not to.fragment or (to.path, to.query) != (here.path, here.query)
    return to.scheme in ("http", "https") and is_moving and (any_host or to.host == here.host)


def identity_of(page: Page, element: Element) -> dict[str, Any]:
    """Return a card's description of a page element. A yes does not count for another element or page state."""
    frame = next((each for each in page.ancestors(element) if each.role == "iframe"), None)
    form = next((each for each in page.ancestors(element) if each.role in FORMS), frame)
    name = " ".join((element.name or page.text_of(element)).split())
    said: dict[str, Any] = {"element": f"{name} ({element.role})" if name else element.role}
    if frame is not None:
        said["frame"] = frame.name or "a document of unknown address"
    if fields := filled_in(page, page.descendants(form) if form is not None else page.elements):
        said["filled in"] = fields
    return {**said, "address of the page": page.url, "as shown": _fingerprint(_around(page, element))}


def _around(page: Page, element: Element) -> list[Any]:
    """Return an element with its dialog, its main part, or else the whole page. The user bases the decision on what
    these parts show. Other parts, such as a clock in the header, may change at any time.
    """
    above = [] if page.is_in_frame(element) else list(page.ancestors(element))
    part = next((each for each in above if each.role in _PARTS), None)
    start, end = (0, len(page.elements)) if part is None else (part.at, part.at + 1 + len(page.descendants(part)))
    named = [(each.role, each.name) for each in page.ancestors(element) if each.name]
    return [page.url, element.ref, element.at - start, named, _shown(page)[start:end]]


def _shown(page: Page) -> list[Any]:
    """Return all that a page shows, by element. Cached per page."""
    own: Any = page.__dict__
    if "kept_shown" not in own:
        own["kept_shown"] = [
            (each.depth, each.role, each.name, each.text, [state for state in each.states if state[0] not in _PASSING])
            for each in page.elements
        ]
    return own["kept_shown"]


def identity_of_call(state: PageState, call: Call) -> dict[str, Any]:
    """Return a card's description of the page for a call without an action on a known element.

    While a dialog is open, the page is known only by the result that announced the dialog. Raises NotTaken if the page
    is unknown.
    """
    if words := state.words:
        _, *found = words.split(_DIALOG)
        if len(found) != 1 or len(found[0]) > _LONGEST_DIALOG:
            raise NotTaken("the page may have changed, so its content is unknown")
        return {"the browser says": " ".join(found[0].split()), "as shown": _fingerprint(words)}
    page = state.page_for(call)
    try:
        elements = [element for element, _ in named_elements(page, call, state.terms)]
    except NotTaken:
        return {"address of the page": page.url, "as shown": _fingerprint([page.url, _shown(page)])}
    names = [name_of(page, each) for each in elements]
    shown = _fingerprint([_around(page, each) for each in elements])
    return {"acts on": names[0] if len(names) == 1 else names, "as shown": shown}


def _fingerprint(parts: Any) -> str:
    return sha256(json.dumps(parts).encode()).hexdigest()[:_DIGITS]
