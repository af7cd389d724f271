"""The calls about savepoints."""

from __future__ import annotations

from fastapi import Response

from tidemark.control_plane.api import models
from tidemark.control_plane.api.services import Actor, Here
from tidemark.control_plane.api.views import savepoint_view


def take_savepoint(services: Here, actor: Actor, job_id: str) -> models.SavepointAccepted:
    """Ask the running driver for a savepoint; the job goes on meanwhile."""
    made = services.savepoints.take(job_id, actor)
    return models.SavepointAccepted(savepoint_id=made.savepoint_id, status_url=f"/savepoints/{made.savepoint_id}")


def list_savepoints_of_job(services: Here, job_id: str) -> models.Savepoints:
    """The savepoints of a job, the newest first."""
    return models.Savepoints(savepoints=[savepoint_view(each) for each in services.savepoints.of_job(job_id)])


def list_savepoints(services: Here) -> models.Savepoints:
    """All savepoints, the newest first; they outlive their jobs."""
    return models.Savepoints(savepoints=[savepoint_view(each) for each in services.savepoints.all()])


def show_savepoint(services: Here, savepoint_id: str) -> models.Savepoint:
    """One savepoint: where it is, how far it goes, how large it is."""
    return savepoint_view(services.savepoints.get(savepoint_id))


def delete_savepoint(services: Here, actor: Actor, savepoint_id: str) -> Response:
    """Delete a savepoint and its files."""
    services.savepoints.delete(savepoint_id, actor)
    return Response(status_code=204)
