"""Who of several processes wrote to a conversation last: whoever did need not look what others have written to it.

It is a hint: someone who has no part in it may write to the log too. A session then finds out when it writes, or where
something does not fit what it knows, and goes on from what the log says.

A conversation that none of them has written to is taken for new, also where there is but one process: one that is no
longer in its memory is known here.
"""

import mmap
from hashlib import blake2b

PLACES = 1 << 17
_SIZE = 8
"""Bytes in a place: the start of the conversation's hash, and the process."""


class LastWriter:
    """To be made before the processes are, and given to each with a number of its own, from 0."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, PLACES * _SIZE)

    def note(self, tenant: str, conversation: str, process: int) -> None:
        """This process has written to a conversation."""
        start, name = _place(tenant, conversation)
        self._memory[start : start + _SIZE] = name + bytes((process + 1,))

    def is_process(self, tenant: str, conversation: str, process: int) -> bool:
        """Whether it was this process; what was noted of another conversation in its place says nothing."""
        start, name = _place(tenant, conversation)
        return self._memory[start : start + _SIZE] == name + bytes((process + 1,))

    def is_any(self, tenant: str, conversation: str) -> bool:
        """Whether it is known that a process has written to a conversation."""
        start, name = _place(tenant, conversation)
        return self._memory[start : start + _SIZE - 1] == name


def _place(tenant: str, conversation: str) -> tuple[int, bytes]:
    digest = blake2b(f"{tenant}\0{conversation}".encode("utf-8", "replace"), digest_size=_SIZE + 3).digest()
    return int.from_bytes(digest[:4]) % PLACES * _SIZE, digest[4:]
