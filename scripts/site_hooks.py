"""Additions for the documentation site: the repository's files that its pages link to, and the long lists.

MkDocs calls these functions by name. Pages link to files outside `docs/`, as in the repository. Documents among them
become pages under `front/`. For code, examples and other files, only the link text stays.
"""

import re
from importlib import import_module
from pathlib import Path
from posixpath import normpath, relpath
from typing import Any

ROOT = Path(__file__).parent.parent
FRONT = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
_FENCE = re.compile(r"(^|\n)(```|~~~).*?\n\2", re.DOTALL)
_OPENING = re.compile(
    r"(?:<!-- file: (?P<file>\S+) -->\n)?^```(?P<language>\w+)(?: (?P<about>\S[^\n]*))?$", re.MULTILINE
)
_MARK = re.compile(r"^<!-- (?:output|not run|test command|status: \d+|help: [\w ]+) -->\n", re.MULTILINE)


def on_files(files: Any, config: Any) -> Any:
    """Turn the documents at the repository's root into pages too."""
    made: Any = import_module("mkdocs.structure.files").File.generated
    for name in FRONT:
        if (ROOT / name).is_file():
            files.append(made(config, f"front/{name}", abs_src_path=str(ROOT / name)))
    return files


def on_config(config: Any) -> Any:
    """Add the long lists to the navigation: measurements, decisions and errors."""
    docs = Path(config["docs_dir"])
    for title, folder in (("What was measured", "results"), ("Why it is so", "decisions"), ("Error codes", "errors")):
        pages = sorted(docs.glob(f"{folder}/*.md"), key=lambda page: (page.name != "README.md", page.name))
        config["nav"].append({title: [f"{folder}/{page.name}" for page in pages]})
    there = [name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md") if (ROOT / name).is_file()]
    config["nav"].append({"Work on Bylaw": [f"front/{name}" for name in there]})
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Change links that leave `docs/` into links to the document's page, or into plain text."""
    del config
    own = page.file.src_uri
    if own == "glossary.md":
        page.meta["search"] = {"boost": 20}
    # Links are relative to the page's place in the repository.
    home = own.removeprefix("front/") if own.startswith("front/") else f"docs/{own}"

    def mended(match: re.Match[str]) -> str:
        image, text, target, anchor = match[1], match[2], match[3], match[4] or ""
        if not target or ":" in target:
            return match[0]
        meant = normpath(f"{home.rpartition('/')[0]}/{target}".lstrip("/"))
        inside = meant.removeprefix("docs/")
        for source in (inside if inside != meant else f"front/{meant}", f"{inside}/README.md"):
            if files.get_file_from_path(source) is not None:
                return f"{image}[{text}]({relpath(source, own.rpartition('/')[0] or '.')}{anchor})"
        return match[0] if image else text

    markdown = _OPENING.sub(_titled, _MARK.sub("", markdown))
    found, last = list[str](), 0
    for fence in _FENCE.finditer(markdown):
        found += [_LINK.sub(mended, markdown[last : fence.start()]), fence[0]]
        last = fence.end()
    return "".join([*found, _LINK.sub(mended, markdown[last:])])


def _titled(opening: re.Match[str]) -> str:
    """Rewrite an opening code fence for the site: drop marks for tests, and turn a file name into a title."""
    title = opening["file"] or (opening["about"] or "").removeprefix("run").removeprefix("lookup")
    return f'```{opening["language"]} title="{title}"' if title else f"```{opening['language']}"
