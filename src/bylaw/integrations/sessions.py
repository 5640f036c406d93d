"""The conversations of a long-lived host, by the key that each call carries."""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from bylaw.engine.door import AnotherPrincipal
from bylaw.integrations.follower import Follower
from bylaw.shield import LiveSession, Shield
from bylaw.shield.history import linked

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
        self._followers: OrderedDict[str, Follower] = OrderedDict()
        self._speaking: OrderedDict[str, LiveSession] = OrderedDict()
        """By key, the conversation of whoever spoke last."""
        self._lock = threading.Lock()

    def taken_up(self, key: str | None, context: Mapping[str, Any] | None) -> LiveSession:
        """The conversation of whoever speaks under a key: another principal has one of their own."""
        session, first = self.speaking(key, context)
        if not key:
            return session
        for left in (first, self._speaking.pop(key, None)):
            if left is not None and left.id != session.id:
                self.follower(left).leave()
        self._speaking[key] = session
        if len(self._speaking) > MOST:
            self._speaking.popitem(last=False)
        if session.id != key:
            self.follower(session, is_linked=True)
        return session

    def follower(self, session: LiveSession, *, is_linked: bool = False) -> Follower:
        """Tells what is new in what a client says was said: some send all of it each time."""
        follower = self._followers.pop(session.id, None)
        if follower is None or follower.session is not session:
            follower = Follower(session, is_linked=is_linked, makes_calls=False)
        self._followers[session.id] = follower
        if len(self._followers) > MOST:
            self._followers.popitem(last=False)
        return follower

    def speaking(self, key: str | None, context: Mapping[str, Any] | None) -> tuple[LiveSession, LiveSession | None]:
        """The session of a conversation for whoever speaks in it now, by what the host vouches for; and that of
        whom it is of, where that is somebody else. It reads the log."""
        session = self.get(key, context)
        if not key or not (context or session.may_be_handed_over):
            return session, None
        try:
            session.vouch(context or {})
            return session, None
        except AnotherPrincipal:
            if self.shield.log is not None:
                with self._lock:
                    # It may have been opened with what is vouched for now, and the log says that it is somebody else's.
                    self._kept.pop(key, None)
            own = self.get(linked(key, context), context)
            own.vouch(context or {})
            return own, self.get(key, {})

    def get(self, key: str | None, context: Mapping[str, Any] | None = None) -> LiveSession:
        """The session of a conversation; `context` is what it begins with, where that is not the same for all."""
        given = self._context if context is None else context
        if not key:
            return self.shield.session(context=given, lacks=NO_KEY)
        with self._lock:
            session = self._kept.get(key)
            if session is None:
                is_lost = key in self._forgotten and self.shield.log is None
                lacks = FORGOTTEN if is_lost else ""
                session = self._kept[key] = self.shield.session(key, context=given, lacks=lacks)
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                # Begun anew it would know of no earlier look-up, and of no earlier change either.
                self._forgotten.add(self._kept.popitem(last=False)[0])
            return session
