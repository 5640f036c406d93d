"""The conversations of a long-lived host, by the key that each call carries."""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from bylaw.shield import LiveSession, Shield

MOST = 10_000
"""Conversations kept at once; the one that was quiet longest goes first."""
NO_KEY = "the call does not say which conversation it belongs to, so what was looked up before is not known"
FORGOTTEN = "the conversation was quiet for so long that what was looked up in it is no longer known"


class Sessions:
    """Sessions by key. A call without one gets a session that knows nothing; so does, without a log, one let go."""

    def __init__(self, shield: Shield, *, context: Mapping[str, Any] | None = None, most: int = MOST) -> None:
        self.shield = shield
        self._context = context
        self._most = most
        self._kept: OrderedDict[str, LiveSession] = OrderedDict()
        self._forgotten: set[str] = set()
        self._lock = threading.Lock()

    def get(self, key: str | None) -> LiveSession:
        """The session of a conversation."""
        if not key:
            return self.shield.session(context=self._context, lacks=NO_KEY)
        with self._lock:
            session = self._kept.get(key)
            if session is None:
                is_lost = key in self._forgotten and self.shield.log is None
                lacks = FORGOTTEN if is_lost else ""
                session = self._kept[key] = self.shield.session(key, context=self._context, lacks=lacks)
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                # Begun anew it would know of no earlier look-up, and of no earlier change either.
                self._forgotten.add(self._kept.popitem(last=False)[0])
            return session
