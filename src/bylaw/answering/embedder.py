"""Implements `--embedder`: vectors that represent meaning, from weights on disk or from an endpoint, as an alternative
to hashed n-grams.

For texts of a few words, static embeddings are enough: the average of one vector per token. A package may include the
weights (extra `embed`), so that nothing is downloaded.
"""

import importlib
import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bylaw.errors import UsageError
from bylaw.rule.structure import Embedder, HashedNgrams, normalised

HASHED = "hashed"
WORDLLAMA = "wordllama"
_EXTRA = "in your clone of Bylaw: pip install '.[embed]'"
_KEY = "none"
"""The API key for an endpoint that needs no key, because the SDK requires one."""


def open_embedder(said: str = "") -> Embedder:
    """Return the embedder that `said` names: `hashed`, `wordllama`, the folder of a static model, or the address of an
    endpoint.
    """
    if said in ("", HASHED):
        return HashedNgrams()
    if said.startswith(("http://", "https://")):
        return EndpointEmbedder(said)
    return StaticEmbedder(*(_of_wordllama() if said == WORDLLAMA else _in_folder(Path(said))))


class StaticEmbedder:
    """Represents text as the average of one vector per token, normalised to unit length (WordLlama, Model2Vec)."""

    def __init__(self, weights: Path, tokenizer: Path) -> None:
        try:
            numpy: Any = importlib.import_module("safetensors.numpy")
            tokenizers: Any = importlib.import_module("tokenizers")
        except ImportError:
            raise UsageError("static embeddings require safetensors and tokenizers", hint=_EXTRA) from None
        try:
            tensors = numpy.load_file(str(weights))
            self._tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer))
        except Exception as error:
            raise UsageError(f"not a static model: {error}", place=str(weights.parent)) from None
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        tables = [table for table in tensors.values() if table.ndim == 2]
        if len(tables) != 1:
            raise UsageError(f"a static model has one table of vectors; this one has {len(tables)}", place=str(weights))
        self._table = tables[0].astype("float32")
        # Model2Vec models may weight tokens, and may let several tokens share a vector.
        self._shares, self._weighs = tensors.get("mapping"), tensors.get("weights")

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        return [self._embed(text) for text in texts]

    def _embed(self, text: str) -> list[float]:
        ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        rows = ids if self._shares is None else self._shares[ids]
        vectors = self._table[rows].astype("float64")
        if self._weighs is not None:
            vectors = vectors * self._weighs[ids].reshape(-1, 1)
        return normalised((vectors.sum(axis=0) / max(1, len(ids))).tolist())


class EndpointEmbedder:
    """An OpenAI-compatible endpoint: `http://127.0.0.1:8080/v1#model`. `#model` is optional if the endpoint has only
    one model.
    """

    def __init__(self, address: str) -> None:
        try:
            openai: Any = importlib.import_module("openai")
        except ImportError:
            hint = "in your clone of Bylaw: pip install '.[compile]'"
            raise UsageError("an endpoint requires the openai SDK", hint=hint) from None
        self._address, _, self._model = address.partition("#")
        self._failure: type[Exception] = openai.OpenAIError
        self._client: Any = openai.OpenAI(base_url=self._address, api_key=os.environ.get("OPENAI_API_KEY") or _KEY)

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        if not texts:
            return []
        try:
            answer = self._client.embeddings.create(
                model=self._model or "default", input=list(texts), encoding_format="float"
            )
        except self._failure as error:
            raise UsageError(f"no embeddings: {str(error).splitlines()[0]}", place=self._address) from None
        found = [normalised(each.embedding) for each in sorted(answer.data, key=lambda each: each.index)]
        if len(found) != len(texts) or len({len(each) for each in found}) != 1:
            message = f"returned {len(found)} embeddings for {len(texts)} texts, or of different lengths"
            raise UsageError(f"the endpoint returned {message}", place=self._address)
        return found


def _of_wordllama() -> tuple[Path, Path]:
    """Return the package's files without importing the package, because importing it would configure logging."""
    found = importlib.util.find_spec(WORDLLAMA)
    if found is None or not found.submodule_search_locations:
        raise UsageError(f"`{WORDLLAMA}` is not installed", hint=_EXTRA)
    folder = Path(found.submodule_search_locations[0])
    tokenizer = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
    return folder / "weights" / "l2_supercat_256.safetensors", tokenizer


def _in_folder(folder: Path) -> tuple[Path, Path]:
    files = folder / "model.safetensors", folder / "tokenizer.json"
    if missing := [file.name for file in files if not file.is_file()]:
        address = "http://127.0.0.1:8080/v1"
        hint = f"`{HASHED}`, `{WORDLLAMA}`, the folder of a static model, or an address such as {address}"
        raise UsageError(f"no embedder: {' and '.join(missing)} missing", place=str(folder), hint=hint)
    return files
