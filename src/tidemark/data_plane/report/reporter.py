"""Where a driver's messages go: a pipe to whoever started it, one JSON object a line."""

from __future__ import annotations

import threading
from typing import TextIO

from tidemark.protocol.message import Message


class Reporter:
    """Safe to call from several threads. A reader that has gone away is no reason to stop."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def send(self, message: Message) -> None:
        line = message.model_dump_json() + "\n"
        with self._lock:
            try:
                self._stream.write(line)
                self._stream.flush()
            except BrokenPipeError:
                pass
