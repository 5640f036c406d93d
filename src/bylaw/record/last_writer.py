"""Remembers which of several processes last wrote to each conversation; that process need not check for others'
entries.

It is only a hint, because other programs may write to the log too. A session notices that when it writes, or when
something contradicts its state, and then continues from the log.

A conversation that no process has written to counts as new. With a single process it records conversations no longer in
memory.
"""

import mmap
from hashlib import blake2b

PLACES = 1 << 17
_SIZE = 8
"""Bytes per slot: the start of the conversation's hash, and the process."""


class LastWriter:
    """Create it before the processes, and give each process a number from 0."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, PLACES * _SIZE)

    def note(self, tenant: str, conversation: str, process: int) -> None:
        """Record that this process wrote to a conversation."""
        start, name = _place(tenant, conversation)
        self._memory[start : start + _SIZE] = name + bytes((process + 1,))

    def is_process(self, tenant: str, conversation: str, process: int) -> bool:
        """Whether this process wrote last; False if the slot holds another conversation."""
        start, name = _place(tenant, conversation)
        return self._memory[start : start + _SIZE] == name + bytes((process + 1,))

    def is_any(self, tenant: str, conversation: str) -> bool:
        """Whether some process is known to have written to the conversation."""
        start, name = _place(tenant, conversation)
        return self._memory[start : start + _SIZE - 1] == name


def _place(tenant: str, conversation: str) -> tuple[int, bytes]:
    digest = blake2b(f"{tenant}\0{conversation}".encode("utf-8", "replace"), digest_size=_SIZE + 3).digest()
    return int.from_bytes(digest[:4]) % PLACES * _SIZE, digest[4:]
