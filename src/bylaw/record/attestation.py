"""A person's word in a conversation, kept as such: an entry of the chain that no decision reads."""

import msgspec
from msgspec import Struct

WORDS = 500
"""Characters of a reason at most."""


class Attestation(Struct, frozen=True):
    """Somebody says that the customer confirmed to them what a card asks. The card stays open: only the customer's own
    answer settles it."""

    card: str
    by: str
    reason: str


read_attestation = msgspec.json.Decoder(Attestation).decode
