"""When Python looks for garbage while conversations are judged."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def rarely_collecting() -> Generator[None]:
    """The pack and the world stay, and conversations leave next to no cycles: looking for them costs a tenth of an
    audit."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(1_000_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
