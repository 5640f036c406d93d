"""One thread: models this small gain nothing from more, and threads that wait for a busy core take its time."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
