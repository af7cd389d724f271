"""How many requests each client may make: a bucket that fills at a steady rate and holds twice as many.

A client is the token that a request has shown to be good, else the address it comes from. A token that was never
verified does not count, or anybody could have as many buckets as words, or empty that of somebody else.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from tidemark.control_plane.store.access import hash_token

BURST_SECONDS = 2.0
MOST_CLIENTS = 10_000


@dataclass
class _Bucket:
    left: float
    at: float


class Limiter:
    """Called by the server's loop alone.

    The client that was heard of longest ago is forgotten when there are too many: after a moment of silence its
    bucket would be full anyway.
    """

    def __init__(self, per_second: float, clock: Callable[[], float], most: int = MOST_CLIENTS) -> None:
        self._rate = per_second
        self._burst = per_second * BURST_SECONDS
        self._clock = clock
        self._most = most
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._tokens: dict[str, str] = {}

    def wait(self, token: str | None, address: str) -> float:
        """Lets one request pass and answers 0, or says after how many seconds the next one may."""
        now = self._clock()
        bucket = self._bucket(self._client(token, address), now)
        bucket.left = min(self._burst, bucket.left + (now - bucket.at) * self._rate)
        bucket.at = now
        if bucket.left < 1.0:
            return (1.0 - bucket.left) / self._rate
        bucket.left -= 1.0
        return 0.0

    def verified(self, token: str, token_id: str) -> None:
        self._tokens[hash_token(token)] = token_id

    def _client(self, token: str | None, address: str) -> str:
        known = None if token is None else self._tokens.get(hash_token(token))
        return f"address {address}" if known is None else f"token {known}"

    def _bucket(self, client: str, now: float) -> _Bucket:
        bucket = self._buckets.setdefault(client, _Bucket(self._burst, now))
        self._buckets.move_to_end(client)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return bucket
