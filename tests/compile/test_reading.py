"""Documents in: whatever they came as, they become the text of a policy."""

from pathlib import Path

import pytest

from bylaw.compile.extract import sections
from bylaw.compile.reading import read_documents
from bylaw.errors import UsageError


def test_a_markdown_file_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "policy.md"
    path.write_text("# Shop\n\nOne rule.\n\nAnother\nrule.\n")
    reading = read_documents([path])
    assert reading.document.text == path.read_text()
    assert reading.title == "Shop"


def test_html_keeps_headings_items_and_rows_and_leaves_out_what_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "policy.html"
    path.write_text(
        "<html><head><title>x</title><style>p {}</style></head>"
        "<body><h1>Shop</h1><p>Refunds are\n made <b>once</b>.</p>"
        "<ul><li>Be quick.</li><li>Be kind &amp; fair.</li></ul>"
        "<table><tr><th>level</th><th>limit</th></tr><tr><td>gold</td><td>500.00</td></tr></table>"
        "<script>no()</script></body></html>"
    )
    found = read_documents([path])
    assert [sentence.text for sentence in found.document.sentences] == [
        "Refunds are made once.",
        "Be quick.",
        "Be kind & fair.",
        "| level | limit |",
        "| gold | 500.00 |",
    ]
    assert found.document.sentences[0].heading == "Shop"


def test_several_documents_stay_apart(tmp_path: Path) -> None:
    first, second = tmp_path / "refunds.txt", tmp_path / "manner.md"
    first.write_text("Refunds are made once.\n")
    second.write_text("# Manner\n\nBe kind.\n")
    found = read_documents([first, second])
    by_text = {sentence.text: sentence for sentence in found.document.sentences}
    assert [file.name for file in found.document.files] == ["documents/refunds.txt", "documents/manner.md"]
    assert by_text["Be kind."].heading == "Manner"
    assert [each.file for each in sections(found.document)] == ["documents/refunds.txt", "documents/manner.md"]


def test_a_folder_is_every_document_in_it(tmp_path: Path) -> None:
    for name in ("b.md", "a/c.md", "a/.draft.md", "x.html", "photo.png"):
        path = tmp_path / "help" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"<p>It is {name} that counts.</p>" if name == "x.html" else f"It is {name} that counts.\n")
    found = read_documents([tmp_path / "help"])
    assert [file.name for file in found.document.files] == [
        "documents/a/c.md",
        "documents/b.md",
        "documents/x.html.md",
    ]
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="the folder has no document"):
        read_documents([tmp_path / "empty"])


def test_a_pdf_is_read_page_by_page(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    path = tmp_path / "policy.pdf"
    path.write_bytes(_pdf("Refunds are made once.", "Be kind."))
    found = read_documents([path])
    assert [sentence.text for sentence in found.document.sentences] == ["Refunds are made once.", "Be kind."]


def test_a_docx_keeps_headings_lists_and_tables(tmp_path: Path) -> None:
    docx = pytest.importorskip("docx")
    made = docx.Document()
    made.add_heading("Shop", 1)
    made.add_paragraph("Refunds are made once.")
    made.add_paragraph("Be kind.", style="List Bullet")
    row = made.add_table(1, 2).rows[0].cells
    row[0].text, row[1].text = "gold", "500.00"
    path = tmp_path / "policy.docx"
    made.save(str(path))
    found = read_documents([path]).document
    assert [sentence.text for sentence in found.sentences] == [
        "Refunds are made once.",
        "Be kind.",
        "| gold | 500.00 |",
    ]
    assert found.sentences[0].heading == "Shop"


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("policy.pdf", b"%PDF-1.4 nothing", "cannot be read"),
        ("policy.docx", b"nothing", "cannot be read"),
        ("policy.doc", b"nothing", "old Word files"),
        ("policy.md", b"\xff\xfe\x00", "not UTF-8"),
        ("policy.md", b"\n \n", "contains no text"),
        ("policy.md", b"# Only a heading\n", "no sentence"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_file(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    if name.endswith("pdf"):
        pytest.importorskip("pypdf")
    if name.endswith("docx"):
        pytest.importorskip("docx")
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageError, match=message) as caught:
        read_documents([tmp_path / name])
    assert name in caught.value.place


def test_parts_hold_every_sentence_once_and_know_the_headings_above(tmp_path: Path) -> None:
    path = tmp_path / "long.md"
    parts = [f"## Part {number}\n\n" + " ".join(f"Rule {number}.{n} holds." for n in range(40)) for number in range(9)]
    path.write_text("# Handbook\n\n" + "\n\n".join(parts) + "\n")
    document = read_documents([path]).document
    found = sections(document, longest=1500)
    assert len(found) > 3
    assert [each for part in found for each in part.sentences(document)] == list(document.sentences)
    assert found[1].above == ("Handbook",)
    assert "".join(document.text[part.start : part.end] for part in found) == document.text


def _pdf(*pages: str) -> bytes:
    """A PDF with a line of text on each page."""
    kids = " ".join(f"{3 + 2 * index} 0 R" for index in range(len(pages)))
    font = 3 + 2 * len(pages)
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>"]
    for index, text in enumerate(pages):
        content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {4 + 2 * index} 0 R"
            f" /Resources << /Font << /F1 {font} 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    out = b"%PDF-1.4\n"
    offsets: list[int] = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode()
    start = len(out)
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    end = f"trailer << /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    return out + f"xref\n0 {size}\n0000000000 65535 f \n{table}{end}".encode()
