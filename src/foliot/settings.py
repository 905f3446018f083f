"""Everything that can be set, from weakest to strongest: defaults, `foliot.toml`, `FOLIOT_*`, command line."""

import binascii
import math
import os
import re
import tomllib
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

PREFIX = "FOLIOT_"
LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("auto", "text", "json")
SECRETS = frozenset(("admin_key", "oidc_client_secret", "encryption_keys"))  # never shown, in no message
HIDDEN = "***"
_ADDRESSES = frozenset(("database", "otlp_endpoint"))  # which may have a password in them

_KEY_ID = re.compile(r"[A-Za-z0-9._-]{1,32}")
_PASSWORD = re.compile(r"^([^:]*://[^:/?#@]*):.*@|(?<=[?&]password=)[^&]*")


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
    tls_cert: str = ""  # a PEM file: the node's certificate and those that vouch for it
    tls_key: str = ""  # and its key
    tls_client_ca: str = ""  # who vouches for workers; where it is given they must show a certificate
    insecure: bool = False  # listen beyond this machine without TLS
    max_connections: int = 10_000  # of one process
    client_seconds: float = 20  # what a client may take for the head of a request, and for each 16 KiB after it
    allow_commands: bool = False  # any program
    allow_command: str = ""  # or the programs that `command` jobs may run, with commas between
    command_user: str = ""  # whom they run as where the worker is root's
    http_allow: str = ""  # what `http` jobs and webhooks may call besides public ones: 10.0.0.0/8,localhost:8080
    admin_key: str = ""
    oidc_issuer: str = ""  # the identity provider; empty means none
    oidc_audience: str = ""  # whom tokens must be for; empty means the client id
    oidc_client_id: str = ""  # with which browsers log in
    oidc_client_secret: str = ""
    oidc_roles: str = ""  # who may what, as in groups:ops=operator,groups:dev=submitter@team-a
    encryption_keys: str = ""  # as in b:BASE64,a:BASE64; the first seals, all open; empty means none is sealed
    lease_seconds: float = 30
    heartbeat_seconds: float = 10
    retention_days: float = 30
    events: bool = True  # whether changes are recorded; without it nobody can follow them, nor be alerted of them
    event_hours: float = 72  # how long the record is kept
    url: str = ""  # where clients and workers find the node; empty means http://host:port
    ca_file: str = ""  # PEM: whom clients and workers trust to vouch for a node; empty means whom the system trusts
    client_cert: str = ""  # PEM: the certificate that they show
    client_key: str = ""
    log_level: str = "info"
    log_format: str = "auto"  # text on a terminal, JSON elsewhere; or text, or json
    otlp_endpoint: str = ""  # where traces are sent, as in http://collector:4318; empty means that none are made

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
    def key_ring(self) -> list[tuple[str, bytes]]:
        """The encryption keys with their ids, the one that seals first."""
        return _key_ring(self.encryption_keys)

    @property
    def node_url(self) -> str:
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::", "") else self.host
        scheme = "https" if self.tls_cert else "http"
        return self.url or f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    def __repr__(self) -> str:
        shown = {
            name: HIDDEN if name in SECRETS and value else masked(value) if name in _ADDRESSES else value
            for name, value in msgspec.structs.asdict(self).items()
        }
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


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
        secret = name.rpartition(" ")[2].removeprefix(PREFIX).lower() in SECRETS
        raise SettingsError(
            f"{name} is {HIDDEN if secret else repr(value)}; it must be of type {type_.__name__}"
        ) from None


def masked(address: str) -> str:
    """An address without its password."""
    return _PASSWORD.sub(lambda found: HIDDEN if found[1] is None else f"{found[1]}:{HIDDEN}@", address)


def _key_ring(text: str) -> list[tuple[str, bytes]]:
    """Told by place where it has no usable id: what stands there may be the key itself."""
    ring: dict[str, bytes] = {}
    for place, part in enumerate(filter(None, map(str.strip, text.split(","))), 1):
        key_id, colon, key = part.partition(":")
        if not colon or not _KEY_ID.fullmatch(key_id):
            raise SettingsError(
                f"encryption_keys: number {place} must be an id (letters, digits, . _ -), a colon and a key; "
                "make one with: foliot keys new-encryption-key"
            )
        if key_id in ring:
            raise SettingsError(f"encryption_keys: the id {key_id!r} is there twice; each key needs its own")
        try:
            ring[key_id] = b64decode(key, validate=True)
        except (binascii.Error, ValueError):
            ring[key_id] = b""
        if len(ring[key_id]) != 32:
            raise SettingsError(
                f"encryption_keys: the key {key_id!r} is not 32 bytes in base64; "
                "make one with: foliot keys new-encryption-key"
            )
    return list(ring.items())


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
    _key_ring(settings.encryption_keys)
    if not 0 <= settings.port <= 65535:
        raise SettingsError(f"port is {settings.port}; it must be 0 to 65535")
    for name in ("heartbeat_seconds", "lease_seconds", "retention_days", "event_hours", "client_seconds"):
        if not 0 < getattr(settings, name) < math.inf:
            raise SettingsError(f"{name} is {getattr(settings, name):g}; it must be more than 0")
    for name in ("worker_concurrency", "max_connections"):
        if getattr(settings, name) < 1:
            raise SettingsError(f"{name} is {getattr(settings, name)}; it must be 1 or more")
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
        shown = masked(settings.database)
        raise SettingsError(f"database is {shown!r}; use postgresql://user@host/name or sqlite:///path")
    if settings.log_level.lower() not in LOG_LEVELS:
        raise SettingsError(f"log_level is {settings.log_level!r}; use {', '.join(LOG_LEVELS)}")
    if settings.log_format not in LOG_FORMATS:
        raise SettingsError(f"log_format is {settings.log_format!r}; use {', '.join(LOG_FORMATS)}")
    if settings.otlp_endpoint and not settings.otlp_endpoint.startswith(("http://", "https://")):
        raise SettingsError(
            f"otlp_endpoint is {masked(settings.otlp_endpoint)!r}; use a collector's address for OTLP over HTTP, as in "
            "http://collector:4318"
        )
    if settings.admin_key and len(settings.admin_key) < 16:
        raise SettingsError("admin_key is shorter than 16 characters; make one with: openssl rand -hex 32")
    _check_tls(settings)
    _check_oidc(settings)


def _check_tls(settings: Settings) -> None:
    for one, other in (("tls_cert", "tls_key"), ("client_cert", "client_key")):
        if bool(getattr(settings, one)) != bool(getattr(settings, other)):
            raise SettingsError(f"{one} and {other} go together; where one file holds both, name it twice")
    if settings.tls_client_ca and not settings.tls_cert:
        raise SettingsError("tls_client_ca is set, but no tls_cert: only over TLS can a worker show a certificate")


def _check_oidc(settings: Settings) -> None:
    if not settings.oidc_issuer:
        for name in ("oidc_audience", "oidc_client_id", "oidc_client_secret", "oidc_roles"):
            if getattr(settings, name):
                raise SettingsError(f"{name} is set, but no oidc_issuer: give the provider's address, or take it away")
        return
    if not (settings.oidc_audience or settings.oidc_client_id):
        raise SettingsError(
            "oidc_issuer is set, but neither oidc_audience nor oidc_client_id: a token must be made for somebody, "
            "or those for other services would open this one"
        )
    if not settings.oidc_roles:
        raise SettingsError(
            "oidc_issuer is set, but no oidc_roles: nobody would be let in. "
            "Say who may what, as in groups:ops=operator,groups:dev=submitter@team-a"
        )
