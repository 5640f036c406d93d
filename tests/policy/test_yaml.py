"""YAML as authors expect it: no surprises, every value with its line."""

from pathlib import Path
from time import process_time

import pytest

from bylaw.policy.yaml import YamlError, read_yaml, read_yaml_file


def value(text: str) -> object:
    return read_yaml(f"x: {text}", file="a.yaml").data["x"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("yes", "yes"),
        ("No", "No"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("true", True),
        ("false", False),
        ("True", "True"),
        ("2024-05-15", "2024-05-15"),
        ("2024-05-15T15:00:00", "2024-05-15T15:00:00"),
        ("15:00", "15:00"),
        ("1_000", "1_000"),
        ("0777", "0777"),
        ("0x1F", "0x1F"),
        ("12", 12),
        ("0", 0),
        ("0.50", 0.5),
        ("00.5", "00.5"),
        ("-3", -3),
        ("1.50", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ('"12"', "12"),
        ("'true'", "true"),
        ("null", None),
        ("~", None),
        ("", None),
        (".inf", ".inf"),
        ("NaN", "NaN"),
        ("1234567890123456789012", "1234567890123456789012"),
        ("!!binary aGk=", "aGk="),
        ("!!python/object/apply:os.getcwd []", []),
    ],
)
def test_a_word_is_a_word(text: str, wanted: object) -> None:
    found = value(text)
    assert found == wanted
    assert type(found) is type(wanted)


def test_keys_are_text() -> None:
    assert list(read_yaml("1: a\ntrue: b\nnull: c\n2024-01-01: d\n", file="a.yaml").data) == [
        "1",
        "true",
        "null",
        "2024-01-01",
    ]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a: 1\nb: 2\na: 3\n", "a.yaml:3: `a` is given twice"),
        ("a:\n  b: 1\n  b: 2\n", "a.yaml:3: `b` is given twice"),
        ("a: &x 1\nb: *x\n", "a.yaml:2: aliases (`*name`) are not allowed; write the value out"),
        ("? [a, b]\n: 1\n", "a.yaml:1: a key must be a plain word"),
        ("a:\n\tb: 1\n", "a.yaml:2: not YAML: the line is indented with a tab; indent with spaces"),
        ("a: [1, 2\n", "a.yaml:2: not YAML: did not find expected ',' or ']'"),
        ("a: 1\n---\nb: 2\n", "a.yaml:2: a second document begins here; put each document in its own file"),
        ("[" * 5000, "a.yaml:"),
        ("[" * 5000 + "]" * 5000, "a.yaml:1: nested too deeply"),
        ("a: \x07\n", "a.yaml: not YAML: ReaderError"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_line(text: str, wanted: str) -> None:
    with pytest.raises(YamlError) as caught:
        read_yaml(text, file="a.yaml")
    assert str(caught.value).startswith(wanted)


def test_every_value_has_its_line() -> None:
    found = read_yaml("a:\n  - x\n  - b: 1\n    c: 2\nd: {e: 1,\n  f: 2}\n", file="a.yaml")
    assert found.place("a", 1, "c") == "a.yaml:4"
    assert found.place("d", "f") == "a.yaml:6"
    assert found.place("a", 1, "no", "such") == "a.yaml:3"
    assert found.place("nowhere") == "a.yaml:1"


@pytest.mark.parametrize("content", [b"\xff\xfe\x00\x01", b"\x89PNG\r\n\x1a\n", b"a: \xc3\x28"])
def test_a_binary_file_is_not_text(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(content)
    with pytest.raises(YamlError, match=r"a\.yaml: not UTF-8 text"):
        read_yaml_file(tmp_path / "a.yaml")


def test_ten_megabytes_are_refused_at_once() -> None:
    started = process_time()
    with pytest.raises(YamlError, match="split the file; the maximum is 1,000,000 characters"):
        read_yaml("- {note: a long case}\n" * 500_000, file="a.yaml")
    assert process_time() - started < 1


def test_laughs_are_not_a_billion() -> None:
    text = "a: &a [x, x]\n" + "".join(
        f"{new}: &{new} [*{old}, *{old}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    with pytest.raises(YamlError, match="aliases"):
        read_yaml(text, file="a.yaml")


def test_an_empty_file_is_an_empty_mapping() -> None:
    assert read_yaml("", file="a.yaml").data == {}
    assert read_yaml("# only a comment\n", file="a.yaml").data == {}
