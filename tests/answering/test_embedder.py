"""Embedders: static weights that know meaning, an endpoint, and what is said where there is none."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from bylaw.answering.embedder import HASHED, WORDLLAMA, open_embedder
from bylaw.errors import UsageError
from bylaw.rule.structure import HashedNgrams, similarity


def test_without_a_name_spelling_tells() -> None:
    assert isinstance(open_embedder(), HashedNgrams)
    assert isinstance(open_embedder(HASHED), HashedNgrams)


def test_static_weights_know_what_spelling_does_not() -> None:
    pytest.importorskip("wordllama", reason="needs the extra `embed`")
    apart = ("the fee", "the price", "the feet")
    for embed, is_meaning in ((open_embedder(WORDLLAMA), True), (HashedNgrams(), False)):
        fee, price, feet = embed(apart)
        assert (similarity(fee, price) > similarity(fee, feet)) is is_meaning
    (empty,) = open_embedder(WORDLLAMA)([""])
    assert set(empty) == {0.0}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model of three words, as Model2Vec keeps it."""
    numpy = pytest.importorskip("numpy")
    safetensors = pytest.importorskip("safetensors.numpy", reason="needs the extra `embed`")
    tokenizers = pytest.importorskip("tokenizers", reason="needs the extra `embed`")
    words = {"[UNK]": 0, "fee": 1, "price": 2, "dog": 3}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, "[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    table = numpy.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype="float32")
    shared = {"embeddings": table, "mapping": numpy.array([0, 1, 1, 2]), "weights": numpy.array([1.0, 2.0, 1.0, 1.0])}
    safetensors.save_file(shared, str(tmp_path / "model.safetensors"))
    return tmp_path


def test_a_folder_of_a_static_model_is_read(folder: Path) -> None:
    fee, price, both = open_embedder(str(folder))(["fee", "price", "fee dog"])
    assert fee == price == [1.0, 0.0]
    assert both == pytest.approx([2 / 5**0.5, 1 / 5**0.5]), "a token may weigh more than another"


def test_a_folder_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"model\.safetensors and tokenizer\.json missing"):
        open_embedder(str(tmp_path))
    pytest.importorskip("tokenizers", reason="needs the extra `embed`")
    (tmp_path / "model.safetensors").write_text("no")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(UsageError, match="not a static model"):
        open_embedder(str(tmp_path))


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        texts: list[str] = body["input"]
        found: list[dict[str, Any]] = [
            {"object": "embedding", "index": place, "embedding": [float(len(text)), 1.0]}
            for place, text in enumerate(texts)
        ]
        if body["model"] == "short":
            found = found[:1]
        data = json.dumps({"object": "list", "model": body["model"], "data": found[::-1], "usage": {}})
        self.send_response(404 if body["model"] == "none" else 200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(data.encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    pytest.importorskip("openai", reason="needs the extra `compile`")
    server = HTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()


def test_an_endpoint_is_asked_and_its_vectors_are_put_in_order(address: str) -> None:
    embed = open_embedder(f"{address}#any")
    one, three = embed(["a", "abc"])
    assert one == pytest.approx([0.5**0.5, 0.5**0.5])
    assert three == pytest.approx([3 / 10**0.5, 1 / 10**0.5])
    assert embed([]) == []


@pytest.mark.parametrize(("model", "why"), [("none", "no embeddings"), ("short", "1 embeddings for 2 texts")])
def test_an_endpoint_that_has_none_is_told(address: str, model: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        open_embedder(f"{address}#{model}")(["a", "b"])
