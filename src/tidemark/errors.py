"""Every failure Tidemark can name, as one tree.

Each error carries a code (stable, documented), a domain (whose move it is), a retry hint and the id of the
step it happened in. Decisions are made from those fields, never from the text.

    TidemarkError
    ├── DefinitionError            user      a job definition that cannot be compiled
    ├── UsageError                 user      a command that cannot be carried out as given
    │   ├── NotFresh               user      the kept state does not fit this definition or this run
    │   ├── AlreadyRunning         user      another process runs this job
    │   ├── SettingMissing         user      an environment variable or secret that is not there
    │   ├── SecretsExposed         user      stored secrets that others than their owner may read
    │   └── RequestRefused         user      a request that the control plane does not carry out
    │       ├── Unauthenticated    user      no token, or one that is unknown or expired
    │       ├── Forbidden          user      a token whose role, or a browser's origin, does not allow it
    │       ├── NotFound           user      there is no such thing
    │       ├── Conflict           user      the job is not in a state in which this can be done
    │       ├── NotAvailable       user      part of the contract that is not available yet
    │       ├── LimitReached       user      a limit of the server
    │       ├── TooManyRequests    user      a client that asks more often than the server allows
    │       └── StateWouldBeLost   user      an upgrade that would lose state, which nobody accepted
    ├── ServerUnreachable          external  the control plane does not answer
    ├── EnvironmentFault           user      Java, Python or a library that is missing or too old
    ├── SourceFailure              external  input that cannot be read
    │   ├── SourceUnreadable       user      a file or path that is broken, named
    │   └── TooManyErrors          user      `on_error: fail` or `max_error_rate` stopped the job
    ├── SinkFailure                external  output that cannot be written
    │   ├── SinkUnavailable        external  down or locked: retried with back-off
    │   ├── SinkMismatch           user      an existing table or path that does not fit
    │   ├── SinkDenied             user      a target that this user may not write to
    │   └── DiskFull               external  no space left where a sink or the state is kept
    ├── Fenced                     internal  a newer attempt of this job has taken over
    ├── StateFault                 internal  a checkpoint, ledger or epoch record that contradicts another
    │   └── SavepointDamaged       external  a savepoint that is not what was written
    └── EngineFault                internal  Spark, the JVM or Tidemark itself failed
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from tidemark.compiler.diagnostics.diagnostic import Diagnostic


class Domain(StrEnum):
    USER = "user"
    EXTERNAL = "external"
    INTERNAL = "internal"


class Retry(StrEnum):
    NEVER = "never"
    BACKOFF = "backoff"
    RESTART = "restart"


class TidemarkError(Exception):
    """The root. `str(error)` is the message; the hint says what to do about it."""

    code: ClassVar[str] = "internal"
    domain: ClassVar[Domain] = Domain.INTERNAL
    retry: ClassVar[Retry] = Retry.NEVER

    def __init__(self, message: str, *, hint: str | None = None, step: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.step = step


class DefinitionError(TidemarkError):
    code = "invalid_definition"
    domain = Domain.USER

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__("; ".join(diagnostic.message for diagnostic in diagnostics))
        self.diagnostics = tuple(diagnostics)


class UsageError(TidemarkError):
    code = "usage"
    domain = Domain.USER


class NotFresh(UsageError):
    code = "not_fresh"


class AlreadyRunning(UsageError):
    code = "already_running"


class SettingMissing(UsageError):
    code = "setting_missing"


class SecretsExposed(UsageError):
    code = "secrets_exposed"


class RequestRefused(UsageError):
    code = "bad_request"


class Unauthenticated(RequestRefused):
    code = "unauthenticated"


class Forbidden(RequestRefused):
    code = "forbidden"


class NotFound(RequestRefused):
    code = "not_found"


class Conflict(RequestRefused):
    code = "conflict"


class NotAvailable(RequestRefused):
    code = "not_available"


class LimitReached(RequestRefused):
    code = "limit_reached"


class TooManyRequests(RequestRefused):
    code = "too_many_requests"


class StateWouldBeLost(RequestRefused):
    code = "state_would_be_lost"


class ServerUnreachable(TidemarkError):
    code = "server_unreachable"
    domain = Domain.EXTERNAL
    retry = Retry.BACKOFF


class EnvironmentFault(TidemarkError):
    code = "environment"
    domain = Domain.USER


class SourceFailure(TidemarkError):
    code = "source_failed"
    domain = Domain.EXTERNAL
    retry = Retry.RESTART


class SourceUnreadable(SourceFailure):
    code = "source_unreadable"
    domain = Domain.USER
    retry = Retry.NEVER


class TooManyErrors(SourceFailure):
    code = "too_many_errors"
    domain = Domain.USER
    retry = Retry.NEVER


class SinkFailure(TidemarkError):
    code = "sink_failed"
    domain = Domain.EXTERNAL
    retry = Retry.RESTART


class SinkUnavailable(SinkFailure):
    code = "sink_unavailable"
    retry = Retry.BACKOFF


class SinkMismatch(SinkFailure):
    code = "sink_mismatch"
    domain = Domain.USER
    retry = Retry.NEVER


class SinkDenied(SinkFailure):
    code = "sink_denied"
    domain = Domain.USER
    retry = Retry.NEVER


class DiskFull(SinkFailure):
    code = "disk_full"
    retry = Retry.NEVER


class Fenced(TidemarkError):
    code = "fenced"
    retry = Retry.NEVER


class StateFault(TidemarkError):
    code = "state_inconsistent"
    retry = Retry.NEVER


class SavepointDamaged(StateFault):
    code = "savepoint_damaged"
    domain = Domain.EXTERNAL


class EngineFault(TidemarkError):
    code = "engine_failed"
    retry = Retry.RESTART
