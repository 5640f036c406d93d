"""Determines whether a call changes a page, and what a user's yes to the call covers: one element with its frame and
form, and the page as shown.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from bylaw.actions.action import PageTerms
from bylaw.actions.page_state import (
    FIELDS,
    FORMS,
    PageState,
    Targeted,
    filled_in,
    link_of,
    name_of,
    named_elements,
)
from bylaw.actions.taking import NotTaken, names_element
from bylaw.reading import Unreadable
from bylaw.reading.page import Element, Page
from bylaw.reading.url import read_link, read_url
from bylaw.trace.event import Call

_PASSING = frozenset(("active", "cursor"))
"""States of elements that change while a user only looks."""
_PASSING_PARTS = frozenset(("banner", "contentinfo", "navigation"))
"""Parts of a page that rarely concern an element elsewhere."""
_IN_LINKS = frozenset(("text", "generic", "img", "heading", "paragraph", "strong", "emphasis"))
"""Elements in a link that do nothing of their own."""
_ROOTS = frozenset(("generic", "document"))
_MOVING_KEYS = ("ArrowDown", "ArrowLeft", "ArrowRight", "ArrowUp", "End", "Home", "PageDown", "PageUp", "Tab")
_DIGITS = 20
"""The length of a fingerprint: 80 bits."""
_DIALOG = "### Modal state"
_LONGEST_DIALOG = 1000


def only_shows(page: Page, target: Targeted, arguments: Mapping[str, Any], terms: PageTerms) -> bool:
    """Whether a call changes nothing. It follows a link to an address that the pack declares, clicks on a
    text field or fills it in, or presses a key that moves the view.

    Any other call on a page could have any effect, whatever the element is called.
    Scripts of a declared site are trusted: no snapshot shows what they do.
    """
    element, text = target.element, arguments.get("text")
    keys = [value for name in ("key", "keys") if (value := arguments.get(name)) is not None]
    if page.is_in_frame(element) or len(keys) > 1 or any(map(_changes_act, arguments, arguments.values())):
        return False
    if element.role == "link":
        return keys in ([], ["Enter"]) and text is None and not target.item and _leads_to_a_look(page, element, terms)
    if keys:
        # The root has the focus if nothing on the page has. Anything else may react to a key.
        return keys[0] in _MOVING_KEYS and element.parent < 0 and element.role in _ROOTS
    return element.role in FIELDS and (element.role != "combobox" or text is not None)


def _changes_act(name: str, value: Any) -> bool:
    """Whether an argument makes more of a call than one plain click, key or text. A text typed slowly presses keys."""
    if name == "button":
        return value not in (None, "left")
    return bool(value) and (name in ("modifiers", "doubleClick", "values", "slowly", "delay") or names_element(name))


def _leads_to_a_look(page: Page, element: Element, terms: PageTerms) -> bool:
    """Whether a link leads to a declared address, from a page of the same site or a declared one."""
    try:
        to, here = link_of(page, element), read_url(page.url)
    except (NotTaken, Unreadable):
        return False
    if any(each.role not in _IN_LINKS for each in page.descendants(element)):
        return False
    is_moving = (to.origin, to.path, to.query) != (here.origin, here.path, here.query)
    return is_moving and terms.is_look(to.address) and (to.origin == here.origin or terms.is_look(here.address))


def identity_of(page: Page, element: Element) -> dict[str, Any]:
    """Return a card's description of a page element. A yes does not count for another element or page state."""
    above = tuple(page.ancestors(element))
    frame = next((each for each in above if each.role == "iframe"), None)
    form = next((each for each in above if each.role in FORMS), frame)
    name = " ".join((element.name or page.text_of(element)).split())
    said: dict[str, Any] = {"element": f"{name} ({element.role})" if name else element.role}
    if frame is not None:
        said["frame"] = frame.name or "a document with an unknown address"
    if leads := _written_address(page, element):
        said["leads to"] = leads
    if fields := filled_in(page, page.descendants(form) if form is not None else page.elements):
        said["filled in"] = fields
    return {**said, "address of the page": page.url, "as shown": _fingerprint(_around(page, element))}


def _written_address(page: Page, element: Element) -> str:
    """Return the address of a link as far as it can be read, else as the page gives it; empty for another element."""
    for each in (element, *page.ancestors(element)):
        if (written := page.properties.get(each.at, {}).get("url")) is not None:
            try:
                return read_link(written, page.url).address
            except Unreadable:
                return written
    return ""


def _around(page: Page, element: Element) -> list[Any]:
    """Return an element with all that the page shows, on which the user bases the decision. Headers, footers and
    menus around other elements are left out, because a clock in them may change at any time.
    """
    above = {element.at, *(each.at for each in page.ancestors(element))}
    named = [(each.role, each.name) for each in page.ancestors(element) if each.name]
    is_whole = page.is_in_frame(element)
    shown: list[Any] = []
    left, place = -1, 0
    for at, each in enumerate(_shown(page)):
        if at <= left:
            continue
        if page.elements[at].role in _PASSING_PARTS and at not in above and not is_whole:
            left = at + len(page.descendants(page.elements[at]))
            continue
        if at == element.at:
            place = len(shown)
        shown.append(each)
    return [page.url, element.ref, place, named, shown]


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
