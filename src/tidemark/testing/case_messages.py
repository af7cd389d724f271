"""What the process that runs tests is told, and what it says. No Spark here: the command line reads these."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

# Begins every line that is a message; Spark may write other lines to the same pipe.
MARK = "tidemark-test "


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Position(_Message):
    """Where to begin: at a case, after so many of its rounds, as an attempt, with the seconds it has taken so far."""

    case: int = 0
    rounds: int = 0
    attempt: int = 1
    seconds: float = 0.0


class ProcessSpec(_Message):
    """`job` is the text of the definition; under `folder` are a folder of each case and one of temporary files."""

    job: str
    folder: str
    start: Position = Position()


class CaseResult(_Message):
    """`diff` says what is wrong, empty when the case passed."""

    kind: Literal["result"] = "result"
    name: str
    passed: bool
    diff: str
    seconds: float


class Crashing(_Message):
    """The last word before a wanted crash: where to go on."""

    kind: Literal["crashing"] = "crashing"
    at: Position
