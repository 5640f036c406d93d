"""What the pages of a browser show: observations over accessibility snapshots, as `pages` of entities.yaml has them."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, cast

from msgspec.structs import replace

from bylaw.actions.action import ElementTerms, PageTerms
from bylaw.actions.action_reader import default_pages
from bylaw.actions.page_state import FRAME, content_of, has_mark, page_in, taken_from_page, text_of
from bylaw.actions.taking import ActionError, NotTaken, Take, compile_take
from bylaw.errors import BylawError
from bylaw.facts.entity import Entity
from bylaw.facts.observation import NOTHING, Getter, Observation, PathScope
from bylaw.facts.written import WrittenPage
from bylaw.policy.pattern import Pattern, PatternError, compile_pattern
from bylaw.policy.yaml import YamlPath
from bylaw.reading import Unreadable
from bylaw.reading.page import Element, Page
from bylaw.text.host import names_host


class PageObservations:
    """Compiles the observations over pages; `paths` has the entities and takes the faults."""

    def __init__(self, paths: Any, terms: PageTerms | None) -> None:
        self._paths = paths
        self.terms = terms or default_pages()

    def read(self, body: WrittenPage, at: YamlPath) -> Observation | None:
        """One observation; None if it names no entity."""
        entity: Entity | None = self._paths.entities.get(str(body.as_))
        if entity is None:
            self._paths.no_entity(str(body.as_), *at)
            return None
        for name in body.fields.keys() - entity.fields.keys():
            self._paths.no_field(entity, name, *at)
        for name in sorted(body.key.keys() ^ set(entity.key)):
            self._paths.fault(f"`key` has to say where each key of `{entity.name}` is, and no more: `{name}`", *at)
        takes = {
            (part, name): take
            for part, texts in (("key", body.key), ("fields", body.fields))
            for name, text in texts.items()
            if (take := self._take(name, str(text), (*at, part, name), is_row=bool(body.each))) is not None
        }
        if not names_host(str(body.url)):
            hint = "begin with the whole host: `url: '^https://shop[.]example/orders/[0-9]+$'`"
            self._paths.fault("`url` fits pages of any host", *at, "url", hint=hint)
        shown = ShownOnPage(self._pattern(body.url, at), self._role(body, at), self.terms)
        key = tuple((self._getter(takes.get(("key", part))),) for part in entity.key)
        fields = {name: self._getter(takes.get(("fields", name))) for name in body.fields}
        return Observation(entity, shown, key, fields, only=True)

    def shown_by(self, tool: str, observation: Observation) -> Observation:
        """An observation as it is for one tool: a snapshot with arguments shows a part of the page."""
        return (
            replace(observation, each=partial(_of_whole_page, observation.each))
            if tool == self.terms.snapshot
            else observation
        )

    def _getter(self, take: Take | None) -> Getter:
        """Finds a value on a page, for an item of `ShownOnPage`."""

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
        try:
            take = compile_take(name, text, frozenset(("page",)), "text", optional=True, arguments={})
        except (ActionError, PatternError) as error:
            self._paths.fault(error.message, *at, hint=error.hint)
            return None
        if take.source in ("argument", "item") or (take.source in ("element", "row") and not is_row):
            hint = (
                "use `$page`" if take.source in ("element", "row") else "a page does not show what the agent asked for"
            )
            self._paths.fault(f"`{text}` is nothing that this page shows", *at, hint=hint)
            return None
        if take.source == "page" and take.field == "field":
            self._paths.fault(f"`{text}` is what was typed, and no fact", *at, hint="read what the page itself shows")
            return None
        return take

    def _pattern(self, text: Any, at: YamlPath) -> Pattern | None:
        try:
            return compile_pattern(str(text), ignore_case=False) if text != "" else None
        except BylawError as error:
            self._paths.fault(error.message, *at, hint=error.hint)
            return None


class ShownOnPage:
    """Finds, in a result that shows a page, the elements that show an entity, each with the page."""

    def __init__(self, url: Pattern | None, each: tuple[str, ElementTerms | None], terms: PageTerms) -> None:
        self._url, (self._role, self._within), self._terms = url, each, terms

    def __call__(self, scope: PathScope) -> Sequence[tuple[Any, Any]]:
        """The items; none if the result shows no such page, or only a part of it."""
        if has_mark(scope.args):
            return ()
        page = page_in(text_of(scope.result))
        if isinstance(page, Unreadable) or not page.is_complete:
            return ()
        # A site may repeat what is in a query, so the pattern has to fit the whole address.
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
    """Whether a row has nothing but the headings of columns."""
    first = next(page.children(row), None)
    return first is None or (
        first.role == "columnheader" and all(cell.role == "columnheader" for cell in page.cells(row))
    )
