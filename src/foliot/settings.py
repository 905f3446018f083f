"""Everything that can be set, from weakest to strongest: defaults, `foliot.toml`, `FOLIOT_*`, command line."""

import math
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

PREFIX = "FOLIOT_"
LOG_LEVELS = ("debug", "info", "warning", "error")


class SettingsError(Exception):
    """A setting that can not be used; the message names it, where it came from, and what would be right."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A node's settings. Each field is `FOLIOT_<NAME>` in the environment and `<name>` in foliot.toml."""

    host: str = "127.0.0.1"
    port: int = 7070
    database: str = ""  # a postgresql:// or sqlite:/// address; empty means SQLite in the data directory
    data_dir: str = "foliot-data"
    worker: bool = True  # the built-in worker for the built-in handlers
    worker_concurrency: int = 20
    resources: str = ""  # what a worker here offers besides its slots, as in cpu=4,memory=8Gi
    labels: str = ""  # what it is, as in zone=eu,disk=ssd
    processes: int = 1
    allow_commands: bool = False
    admin_key: str = ""
    lease_seconds: float = 30
    heartbeat_seconds: float = 10
    retention_days: float = 30
    url: str = ""  # where clients and workers find the node; empty means http://host:port
    log_level: str = "info"

    @property
    def store_url(self) -> str:
        return self.database or f"sqlite:///{Path(self.data_dir) / 'foliot.db'}"

    @property
    def is_sqlite(self) -> bool:
        return self.store_url.startswith("sqlite:")

    @property
    def worker_resources(self) -> dict[str, str]:
        return _pairs("resources", self.resources)

    @property
    def worker_labels(self) -> dict[str, str]:
        return _pairs("labels", self.labels)

    @property
    def node_url(self) -> str:
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::", "") else self.host
        return self.url or f"http://{f'[{host}]' if ':' in host else host}:{self.port}"


def load_settings(
    given: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Settings:
    """Settings from all places. `given` are the command line's, None meaning not given. `file` is the command line's,
    or FOLIOT_CONFIG, or ./foliot.toml; only the last may be missing, since nobody asked for it."""
    environ = os.environ if environ is None else environ
    named = file or environ.get(f"{PREFIX}CONFIG")
    values = _from_file(Path(named or "foliot.toml"), must_exist=bool(named))
    for field in msgspec.structs.fields(Settings):
        name = f"{PREFIX}{field.name.upper()}"
        if environ.get(name):
            values[field.name] = _convert(environ[name], field.type, name)
    for key, value in (given or {}).items():
        if value is not None:
            values[key] = value
    settings = Settings(**values)
    _check(settings)
    return settings


def _from_file(file: Path, *, must_exist: bool) -> dict[str, Any]:
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        if must_exist:
            raise SettingsError(f"{file} is not there") from None
        return {}
    except OSError as error:
        raise SettingsError(f"{file} can not be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{file} is not UTF-8 text") from None
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file} is not valid TOML: {error}") from None
    fields = {field.name: field for field in msgspec.structs.fields(Settings)}
    for name, value in values.items():
        if name not in fields:
            raise SettingsError(f"{file}: there is no setting {name!r}; the settings are {', '.join(sorted(fields))}")
        values[name] = _convert(value, fields[name].type, f"{file}: {name}")
    return values


def _convert(value: object, type_: Any, name: str) -> Any:
    if isinstance(value, str) and type_ is bool:
        value = {
            "1": True,
            "true": True,
            "yes": True,
            "on": True,
            "0": False,
            "false": False,
            "no": False,
            "off": False,
        }.get(value.lower(), value)
    try:
        return msgspec.convert(value, type_, strict=False)
    except msgspec.ValidationError:
        raise SettingsError(f"{name} is {value!r}; it must be of type {type_.__name__}") from None


def _pairs(setting: str, text: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, value = (word.strip() for word in part.partition("="))
        if not name or not value:
            raise SettingsError(f"{setting} is {text!r}; it must be names with values, as in a=1,b=2")
        pairs[name] = value
    return pairs


def _check(settings: Settings) -> None:
    _pairs("resources", settings.resources)
    _pairs("labels", settings.labels)
    if not 0 <= settings.port <= 65535:
        raise SettingsError(f"port is {settings.port}; it must be 0 to 65535")
    for name in ("heartbeat_seconds", "lease_seconds", "retention_days"):
        if not 0 < getattr(settings, name) < math.inf:
            raise SettingsError(f"{name} is {getattr(settings, name):g}; it must be more than 0")
    if settings.worker_concurrency < 1:
        raise SettingsError(f"worker_concurrency is {settings.worker_concurrency}; it must be 1 or more")
    if settings.lease_seconds < 2 * settings.heartbeat_seconds:
        raise SettingsError(
            f"lease_seconds ({settings.lease_seconds:g}) must be at least twice heartbeat_seconds "
            f"({settings.heartbeat_seconds:g}), so that one lost heartbeat does not lose a worker's jobs"
        )
    if settings.processes < 1:
        raise SettingsError(f"processes is {settings.processes}; it must be 1 or more")
    if settings.processes > 1 and settings.is_sqlite:
        raise SettingsError(
            "more than one process needs PostgreSQL: SQLite takes one writing process. "
            "Give --database postgresql://… or leave --processes at 1"
        )
    if not settings.store_url.startswith(("sqlite:", "postgresql:", "postgres:")):
        raise SettingsError(f"database is {settings.database!r}; use postgresql://user@host/name or sqlite:///path")
    if settings.log_level.lower() not in LOG_LEVELS:
        raise SettingsError(f"log_level is {settings.log_level!r}; use {', '.join(LOG_LEVELS)}")
    if settings.admin_key and len(settings.admin_key) < 16:
        raise SettingsError("admin_key is shorter than 16 characters; make one with: openssl rand -hex 32")
