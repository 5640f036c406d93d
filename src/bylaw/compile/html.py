"""HTML as lines of Markdown: headings, paragraphs, list items and table rows; what is not shown is left out."""

from html.parser import HTMLParser

_UNSHOWN = {"script", "style", "head", "template", "noscript", "svg"}
_TAGS = "p div section article li ul ol table tr blockquote pre br dt dd hr"
_BLOCKS = frozenset(_TAGS.split())
_HEADINGS = {f"h{level}": level for level in range(1, 7)}


class _Lines(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self._words: list[str] = []
        self._start = ""
        self._hidden = 0
        self._cells: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNSHOWN:
            self._hidden += 1
        elif tag == "tr":
            self.end_block()
            self._cells = []
        elif tag in _BLOCKS or tag in _HEADINGS:
            if self._cells is None:
                self.end_block()
            if tag == "li":
                self._start = "- "
            elif tag in _HEADINGS:
                self._start = f"{'#' * _HEADINGS[tag]} "

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNSHOWN:
            self._hidden = max(0, self._hidden - 1)
        elif tag in ("td", "th") and self._cells is not None:
            self._cells.append(self._taken())
        elif tag == "tr" and self._cells is not None:
            cells, self._cells = self._cells, None
            if any(cells):
                self.lines += [f"| {' | '.join(cells)} |"]
        elif (tag in _BLOCKS or tag in _HEADINGS) and self._cells is None:
            self.end_block()

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._words.append(data)

    def end_block(self) -> None:
        """Put down what was said since the last block."""
        start, text = self._start, self._taken()
        self._start = ""
        if text:
            self.lines += [start + text, ""]

    def _taken(self) -> str:
        text = " ".join("".join(self._words).split())
        self._words = []
        return text


def html_lines(text: str) -> list[str]:
    parser = _Lines()
    parser.feed(text)
    parser.close()
    parser.end_block()
    return parser.lines
