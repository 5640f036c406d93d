"""How a tool's arguments and result become facts.

Observations use a small path language to locate a value in a result, or in a call's arguments:

    $            the current item (without `each`, the whole result)
    $result      the whole result          $args.name   an argument of the call
    $key         the current item's name, if `each` iterates over an object
    $of          in a database: the record that contains the item
    .name  ['a name']  [0]                 one step down
    [*]          every item of a list      .*           every value of an object
    =word        the literal word
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from bylaw.actions.action import ElementTerms, PageTerms
from bylaw.actions.action_reader import default_pages
from bylaw.actions.page_state import FRAME, content_of, has_mark, page_in, taken_from_page, text_of
from bylaw.actions.taking import ActionError, NotTaken, Take, compile_take
from bylaw.errors import BylawError
from bylaw.facts.entity import UNDECLARED, Entity, Key
from bylaw.facts.value import key_of
from bylaw.facts.written import WrittenPage
from bylaw.policy.pattern import Pattern, compile_pattern
from bylaw.policy.yaml import YamlPath
from bylaw.reading import Unreadable
from bylaw.reading.page import Element, Page
from bylaw.text.host import names_host
from bylaw.trace.event import Result
from bylaw.trace.recorded_value import Contradicted

_ROOT = re.compile(r"\$(result|args|key|of)?(?![A-Za-z_0-9])")
_STEP = re.compile(r"\.(\*)|\.([A-Za-z_][A-Za-z_0-9-]*)|\[(\*)\]|\[(\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")


class PathError(BylawError):
    """Raised if a path in an observation is invalid."""

    code = "BY403"


NOTHING: Final[Any] = object()
"""The result of a path that leads to no value."""


class PathScope(Struct, frozen=True, gc=False):
    """The values at which a path can start."""

    item: Any
    result: Any
    args: Mapping[str, Any]
    key: Any = NOTHING
    find: "Finder | None" = None
    """Reads fields of other entities. Set for writes, but not for results."""


Finder = Callable[[str, Any, str], Any]
"""Given an entity, a key and a field, returns the value that was known at that time, or NOTHING."""
Getter = Callable[[PathScope], Any]

_START: dict[str, Getter] = {
    "": attrgetter("item"),
    "result": attrgetter("result"),
    "args": attrgetter("args"),
    "key": attrgetter("key"),
    "of": attrgetter("args"),
}


def compile_path(text: str) -> Getter:
    """Compile a path to a function that returns the value at the path. For a path with `*`, it returns a list. NOTHING
    if there is no value.
    """
    if text.startswith("="):
        literal = text[1:]
        return lambda scope: literal
    root, steps = _parse(text)
    start = _START[root]
    if not steps:
        return start
    if len(steps) == 1 and isinstance(steps[0], str) and steps[0] != "*":
        name = steps[0]

        def one(scope: PathScope) -> Any:
            base = start(scope)
            return base.get(name, NOTHING) if isinstance(base, dict) else NOTHING  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

        return one
    if "*" in steps or None in steps:
        return partial(_gathered, start, steps)
    return lambda scope: next((value for value, _ in _walk([(start(scope), scope.key)], steps)), NOTHING)


def _gathered(start: Getter, steps: "Sequence[_Step]", scope: PathScope) -> Any:
    """Return the values at a path with `*`. If their container is missing, return NOTHING, not an empty list."""
    first = next(place for place, step in enumerate(steps) if step in (None, "*"))
    wanted = list if steps[first] is None else dict
    held = _walk([(start(scope), scope.key)], steps[:first])
    if not any(isinstance(value, wanted) for value, _ in held):
        return NOTHING
    return [value for value, _ in _walk(held, steps[first:])]


class ItemPath:
    """A path to a number of items. If they are the members of an object, each item comes with its name."""

    def __init__(self, text: str) -> None:
        root, self._steps = _parse(text)
        self._start = _START[root]

    def __call__(self, scope: PathScope) -> Sequence[tuple[Any, Any]]:
        return _walk([(self._start(scope), scope.key)], self._steps)

    def is_misfit(self, scope: PathScope) -> bool:
        """Whether a value on the path has a structure that the path does not expect."""
        found: list[tuple[Any, Any]] = [(self._start(scope), NOTHING)]
        for step in self._steps:
            wanted = list if step is None or isinstance(step, int) else dict
            if any(value is not None and not isinstance(value, wanted) for value, _ in found):
                return True
            found = _walk(found, [step])
        return False

    def is_empty(self, scope: PathScope) -> bool:
        """Whether the path leads to nothing but empty lists or objects. This is a valid answer."""
        found: list[tuple[Any, Any]] = [(self._start(scope), scope.key)]
        for step in self._steps:
            following = _walk(found, [step])
            wanted = list if step is None else dict
            if step in (None, "*") and not following and any(isinstance(value, wanted) for value, _ in found):
                return True
            found = following
        return False


def first_name(text: str) -> str | None:
    """Return the first field that a path reads from a result or row. None if the path starts elsewhere."""
    root, steps = _parse(text)
    name = next((step for step in steps if step is not None), None)
    return name if root in ("", "result") and isinstance(name, str) and name != "*" else None


_Step = str | int | None
"""One step of a path: a name, an index, `*` for the values in an object, or None for the items in a list."""


def _parse(text: str) -> tuple[str, list[_Step]]:
    start = _ROOT.match(text)
    if not start:
        raise PathError(f"path `{text}` must start with `$`, `$args`, `$result` or `$key`, or be `=word`")
    at, steps = start.end(), list[_Step]()
    while at < len(text):
        match = _STEP.match(text, at)
        if not match:
            raise PathError(
                f"path `{text}` cannot be read from column {at + 1}", hint="steps are `.name`, `[0]`, `[*]`, `.*`"
            )
        star, name, items, position, quoted, double = match.groups()
        if items:
            steps.append(None)
        elif star:
            steps.append("*")
        elif position is not None:
            steps.append(int(position))
        else:
            steps.append(name if name is not None else quoted if quoted is not None else double)
        at = match.end()
    return start[1] or "", steps


def _walk(found: list[tuple[Any, Any]], steps: Sequence[_Step]) -> list[tuple[Any, Any]]:
    for step in steps:
        following: list[tuple[Any, Any]] = []
        for value, key in found:
            if step is None:
                if isinstance(value, list):
                    listed: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
                    following += [(item, key) for item in listed]
            elif isinstance(step, int):
                if isinstance(value, list):
                    listed = value  # pyright: ignore[reportUnknownVariableType]
                    if step < len(listed):
                        following.append((listed[step], key))
            elif isinstance(value, dict):
                record: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
                if step == "*":
                    following += [(item, name) for name, item in record.items()]
                elif step in record:
                    following.append((record[step], key))
        found = following
    return [pair for pair in found if pair[0] is not NOTHING]


class Observation(Struct, frozen=True):
    """One way in which the result of a tool shows an entity."""

    entity: Entity
    each: Callable[[PathScope], Sequence[tuple[Any, Any]]] | None
    key: tuple[tuple[Getter, ...], ...]
    """For each key field, the paths at which to look for it, in this order."""
    fields: dict[str, Getter]
    """The fields for which the pack gives a path."""
    only: bool
    when: Callable[[PathScope], bool] | None = None
    text: Pattern | None = None
    """Matches results in the form of text (including errors) that show the entity. The named groups are the item's
    fields.
    """
    absent: Pattern | None = None
    """Matches the text of a result which says that the entity does not exist."""
    is_whole: bool = False
    """Whether the record is complete, so that a field it does not contain has the default value."""
    reads: frozenset[str] = frozenset()


class Sighting(Struct, frozen=True, gc=False):
    """An entity as shown by one result."""

    key: Key
    observation: Observation
    scope: PathScope
    exists: bool = True

    def show(self, field: str) -> Any:
        """Return the raw value of `field` in this result or, if it is missing, its default. NOTHING if there is
        neither.
        """
        value = self.show_own(field)
        return self.default(field) if value is NOTHING else value

    def show_own(self, field: str) -> Any:
        """Return the raw value of `field` in this result. NOTHING if it is missing."""
        if field == "exists":
            return self.exists
        if not self.exists:
            return NOTHING
        getter = self.observation.fields.get(field)
        if getter is not None:
            return getter(self.scope)
        item = self.scope.item
        return item.get(field, NOTHING) if isinstance(item, dict) and not self.observation.only else NOTHING  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    def default(self, field: str) -> Any:
        """Return the default of a field that is missing from a complete record. NOTHING if there is no default."""
        observation = self.observation
        if not observation.is_whole or observation.only or field in observation.fields:
            return NOTHING
        declared = observation.entity.fields.get(field)
        if declared is None or declared.default is UNDECLARED or not self.exists:
            return NOTHING
        return declared.default if isinstance(self.scope.item, dict) and self._is_recognised() else NOTHING

    def shows_more(self) -> bool:
        """Whether the result shows more than the key, namely another field or that the entity does not exist."""
        if not self.exists:
            return True
        entity = self.observation.entity
        has_fields = False
        for name in entity.fields:
            if name not in entity.key:
                has_fields = True
                if self.show(name) is not NOTHING:
                    return True
        # If the entity has no other fields, the result shows that it exists.
        return not has_fields

    def _is_recognised(self) -> bool:
        """Whether the record itself shows the key or another field. The call alone may have supplied the key."""
        observation, item = self.observation, cast("dict[str, Any]", self.scope.item)
        for name in observation.entity.fields:
            if name not in observation.fields and item.get(name) is not None:
                return True
        told = PathScope(item, self.scope.result, {}, self.scope.key)
        getters = [*observation.fields.values(), *(place for places in observation.key for place in places)]
        return any(_is_something(get(told)) and not _is_something(get(_EMPTY)) for get in getters)


_EMPTY = PathScope({}, {}, {})


def _is_something(value: Any) -> bool:
    return value is not NOTHING and value is not None


def searched_text(result: Result, value: Any, is_accepted: bool | None) -> str | None:
    """Return the text in which to search for patterns: a refusal, or a result that is not JSON. None for other data."""
    if isinstance(value, str):
        return value
    return None if is_accepted and result.is_json() else result.text


def sightings(
    observation: Observation, args: Mapping[str, Any], value: Any, text: str | None, accepted: bool | None
) -> Iterator[Sighting]:
    """Yield the entities that the result of a call shows. `text` is the content if it is text or an error."""
    whole = PathScope(value, value, args)
    if text is not None and observation.absent is not None and (match := observation.absent.search(text)):
        scope = PathScope(match.groupdict(), value, args)
        if (key := _key(observation, scope)) is not None:
            yield Sighting(key, observation, scope, exists=False)
        return
    scopes = [whole]
    if observation.text is not None:
        found = observation.text.search(text) if text is not None else None
        scopes = [PathScope(found.groupdict(), value, args)] if found else []
    elif not accepted:
        return
    elif observation.each is not None:
        scopes = [PathScope(item, value, args, name) for item, name in observation.each(whole)]
    for scope in scopes:
        if (shown := sighting_at(observation, scope)) is not None:
            yield shown


def sighting_at(observation: Observation, scope: PathScope) -> Sighting | None:
    if observation.when is not None and not observation.when(scope):
        return None
    key = _key(observation, scope)
    return None if key is None else Sighting(key, observation, scope)


_NAMELESS = (Contradicted, list, dict)


def can_be_key(part: Any) -> bool:
    """Whether a value can be part of a key: a number or a non-empty string."""
    if part.__class__ is str:
        return bool(part.strip())
    return part is not NOTHING and part is not None and part.__class__ not in _NAMELESS


def _key(observation: Observation, scope: PathScope) -> Key | None:
    parts: list[Any] = []
    for places in observation.key:
        for place in places:
            part = place(scope)
            if part.__class__ in _NAMELESS:
                # The path leads to several values or to none, so it does not identify one entity.
                return None
            if can_be_key(part):
                parts.append(part)
                break
        else:
            return None
    return key_of(parts)


Unread = Literal["not_captured", "not_readable", "not_mapped", "not_told", "contradicted", "spelt_otherwise"]


def unreadable(observations: Sequence[Observation], args: Mapping[str, Any], value: Any) -> Unread | None:
    """Return why a captured result shows no entity of this kind. None for a valid answer, such as an empty list."""
    text = value if isinstance(value, str) else None
    if any(observation.when is not None for observation in observations):
        return None if text is None else "not_readable"
    if any(any(True for _ in sightings(each, args, value, text, True)) for each in observations):
        return None
    if text is not None:
        # "Not found" is an answer, even if it does not name the entity.
        says_none = any(each.absent is not None and each.absent.search(text) for each in observations)
        return None if says_none or not text.strip() else "not_readable"
    scope = PathScope(value, value, args)
    if any(isinstance(each.each, ItemPath) and each.each.is_empty(scope) for each in observations):
        return None
    return "not_mapped" if _holds_something(value) else None


def _holds_something(value: Any) -> bool:
    """Whether a result contains more than empty lists and records. A search without matches returns only these."""
    if isinstance(value, dict):
        return any(map(_holds_something, cast("dict[str, Any]", value).values()))
    if isinstance(value, list):
        return bool(cast("list[Any]", value))
    return value is not None


class PageObservations:
    """Compiles observations of browser pages. `paths` provides the entities and collects the errors."""

    def __init__(self, paths: Any, terms: PageTerms | None) -> None:
        self._paths = paths
        self.terms = terms or default_pages()

    def read(self, body: WrittenPage, at: YamlPath) -> Observation | None:
        """Compile one observation. Return None if it names no entity."""
        entity: Entity | None = self._paths.entity(body.as_, body.fields, at)
        if entity is None:
            return None
        for name in sorted(body.key.keys() ^ set(entity.key)):
            self._paths.fault(f"`key` must locate each key of `{entity.name}` and nothing else: `{name}`", *at)
        takes = {
            (part, name): take
            for part, texts in (("key", body.key), ("fields", body.fields))
            for name, text in texts.items()
            if (take := self._take(name, str(text), (*at, part, name), is_row=bool(body.each))) is not None
        }
        if not names_host(str(body.url)):
            hint = "begin with the complete host: `url: '^https://shop[.]example/orders/[0-9]+$'`"
            self._paths.fault("`url` matches pages on any host", *at, "url", hint=hint)
        shown = ShownOnPage(self._pattern(body.url, at), self._role(body, at), self.terms)
        key = tuple((self._getter(takes.get(("key", part))),) for part in entity.key)
        fields = {name: self._getter(takes.get(("fields", name))) for name in body.fields}
        return Observation(entity, shown, key, fields, only=True)

    def shown_by(self, tool: str, observation: Observation) -> Observation:
        """Return the observation for one tool. If a snapshot has arguments, it shows only part of the page and is
        ignored.
        """
        return (
            replace(observation, each=partial(_of_whole_page, observation.each))
            if tool == self.terms.snapshot
            else observation
        )

    def _getter(self, take: Take | None) -> Getter:
        def value(scope: PathScope) -> Any:
            if take is None:
                return NOTHING
            page, element = cast("tuple[Page, Element]", scope.item)
            try:
                return taken_from_page(take, page, element, self.terms)
            except NotTaken:
                return NOTHING

        return value

    def _role(self, body: WrittenPage, at: YamlPath) -> tuple[str, ElementTerms | None]:
        within = body.within
        if within is None:
            return str(body.each), None
        named = self._pattern(within.named, (*at, "within", "named")) if within.named != "" else None
        roles = tuple(map(str, within.role)) if isinstance(within.role, list) else (str(within.role),)
        return str(body.each), ElementTerms(tuple(filter(None, roles)), str(within.name), named)

    def _take(self, name: str, text: str, at: YamlPath, *, is_row: bool) -> Take | None:
        with self._paths.noting(BylawError, at):
            take = compile_take(name, text, frozenset(("page",)), "text", optional=True, arguments={})
            is_part = take.source in ("element", "row")
            if take.source in ("argument", "item") or (is_part and not is_row):
                hint = "use `$page`" if is_part else "a page does not show what the agent asked for"
                raise ActionError(f"this page does not show `{text}`", hint=hint)
            if take.source == "page" and take.field == "field":
                raise ActionError(f"`{text}` is typed text, not a fact", hint="read what the page itself shows")
            return take
        return None

    def _pattern(self, text: Any, at: YamlPath) -> Pattern | None:
        with self._paths.noting(BylawError, at):
            return compile_pattern(str(text), ignore_case=False) if text != "" else None
        return None


class ShownOnPage:
    """Finds, in a result, the elements of a page that show an entity."""

    def __init__(self, url: Pattern | None, each: tuple[str, ElementTerms | None], terms: PageTerms) -> None:
        self._url, (self._role, self._within), self._terms = url, each, terms

    def __call__(self, scope: PathScope) -> Sequence[tuple[Any, Any]]:
        """Return the items. Empty if the result shows a different page, or only part of the page."""
        if has_mark(scope.args):
            return ()
        page = page_in(text_of(scope.result))
        if isinstance(page, Unreadable) or not page.is_complete:
            return ()
        # The pattern must match the whole address, because an address may contain a query.
        if self._url is None or not self._url.occurs(page.url):
            return ()
        return [((page, element), NOTHING) for element in self._elements(page)]

    def _elements(self, page: Page) -> Iterator[Element]:
        if not self._role:
            yield from page.elements[:1]
            return
        left = content_of(page, (*self._terms.content, FRAME))
        for element in page.find(self._role):
            if element.at in left or (element.role == "row" and _is_heading(page, element)):
                continue
            if self._within is None or any(map(self._within.fits, page.ancestors(element))):
                yield element


def _of_whole_page(
    shown: Callable[[PathScope], Sequence[tuple[Any, Any]]] | None, scope: PathScope
) -> Sequence[tuple[Any, Any]]:
    return shown(scope) if shown is not None and not any(scope.args.values()) else ()


def _is_heading(page: Page, row: Element) -> bool:
    first = next(page.children(row), None)
    return first is None or (
        first.role == "columnheader" and all(cell.role == "columnheader" for cell in page.cells(row))
    )
