"""A relay in front of a server that cuts a connection when the client says a certain thing, before or after it acts."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_PATIENCE = 30.0
_HESITATION = 0.5


@dataclass
class Relay:
    """`words` arm the cut, once: with `delivered` the server hears them and acts, and its answer never arrives.

    It hears them when the client, on another connection, has said `first` and got an answer, or gets none because the
    server waits for the very thing it has not heard yet: the worst moment.
    While the server is down, connections are closed as soon as they are made.
    """

    server: tuple[str, int]
    words: bytes | re.Pattern[bytes] | None = None
    delivered: bool = True
    first: bytes = b""
    cuts: int = 0
    _said_first: threading.Event = field(default_factory=threading.Event)
    _answered: threading.Event = field(default_factory=threading.Event)
    _listener: socket.socket = field(default_factory=socket.socket)
    _turn: threading.Lock = field(default_factory=threading.Lock)

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def serve(self) -> None:
        with suppress(OSError):  # the listener is closed at the end of the test
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        with client, suppress(ConnectionError), socket.create_connection(self.server) as server:
            answers = threading.Thread(target=self._pass_on, args=(server, client), daemon=True)
            answers.start()
            with suppress(OSError):
                self._listen(client, server)
            for end in (client, server):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            answers.join()

    def _listen(self, client: socket.socket, server: socket.socket) -> None:
        while said := client.recv(65536):
            if self._armed_by(said):
                self.cuts += 1
                client.shutdown(socket.SHUT_RDWR)
                if self.delivered:
                    assert self._said_first.wait(_PATIENCE)
                    self._answered.wait(_HESITATION)
                    server.sendall(said)
                    server.recv(65536)
                return
            if self.cuts and self.first in said:
                self._said_first.set()
            server.sendall(said)

    def _armed_by(self, said: bytes) -> bool:
        with self._turn:
            words = self.words
            if words is None or not (words in said if isinstance(words, bytes) else words.search(said)):
                return False
            self.words = None
            self._said_first.clear()
            self._answered.clear()
            return True

    def _pass_on(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while answer := server.recv(65536):
                client.sendall(answer)
                if self._said_first.is_set():
                    self._answered.set()
        # A server that hung up, or died, must be seen to have done so.
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


@contextmanager
def relay_to(port: int, own_port: int = 0) -> Iterator[Relay]:
    """Listens on `own_port`, or on any that is free."""
    relay = Relay(("127.0.0.1", port))
    relay._listener.bind(("127.0.0.1", own_port))
    relay._listener.listen()
    threading.Thread(target=relay.serve, daemon=True).start()
    try:
        yield relay
    finally:
        relay._listener.shutdown(socket.SHUT_RDWR)
        relay._listener.close()
