"""Foliot, a distributed job scheduler: jobs are stored before they are acknowledged and run under a lease."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foliot.sdk.app import Foliot
    from foliot.sdk.async_client import AsyncClient
    from foliot.sdk.client import Client
    from foliot.sdk.context import JobContext
    from foliot.sdk.errors import Fatal, Retry
    from foliot.sdk.failures import FoliotHttpError, JobCancelled, JobFailed
    from foliot.sdk.graph import Graph
    from foliot.sdk.job import AsyncJob, Job

__version__ = "0.1.0"

_PUBLIC = {
    "AsyncClient": "foliot.sdk.async_client",
    "AsyncJob": "foliot.sdk.job",
    "Client": "foliot.sdk.client",
    "Fatal": "foliot.sdk.errors",
    "Foliot": "foliot.sdk.app",
    "FoliotHttpError": "foliot.sdk.failures",
    "Graph": "foliot.sdk.graph",
    "Job": "foliot.sdk.job",
    "JobCancelled": "foliot.sdk.failures",
    "JobContext": "foliot.sdk.context",
    "JobFailed": "foliot.sdk.failures",
    "Retry": "foliot.sdk.errors",
}

__all__ = [
    "AsyncClient",
    "AsyncJob",
    "Client",
    "Fatal",
    "Foliot",
    "FoliotHttpError",
    "Graph",
    "Job",
    "JobCancelled",
    "JobContext",
    "JobFailed",
    "Retry",
]


def __getattr__(name: str) -> object:
    """The public names are loaded when they are used: importing foliot costs a program nothing it does not need."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'foliot' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value
