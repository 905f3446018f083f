"""What a program says about itself, as its settings have it: its log, and its traces where they are asked for."""

from collections.abc import Iterator
from urllib.parse import parse_qs, unquote, urlsplit

from foliot import __version__
from foliot.settings import SECRETS, Settings, SettingsError
from foliot.telemetry import logs, tracing


def start_logs(settings: Settings) -> None:
    logs.set_up(settings.log_level, settings.log_format, secrets=secrets_of(settings))


def start_traces(settings: Settings, *, service: str) -> None:
    """Nothing is done, nor imported, where none are asked for. `SettingsError` where they can not be made."""
    if settings.otlp_endpoint:
        try:
            tracing.start(settings.otlp_endpoint, service=service, version=__version__)
        except tracing.MissingExtra as error:
            raise SettingsError(str(error)) from None


def stop_traces() -> None:
    """What is left goes out first, within a few seconds."""
    tracing.stop()


def secrets_of(settings: Settings) -> set[str]:
    """The values that no line may show."""
    found = {str(getattr(settings, name)) for name in SECRETS}
    found.update(part.partition(":")[2].strip() for part in settings.encryption_keys.split(","))
    for address in (settings.database, settings.otlp_endpoint):
        found.update(_passwords(address))
    return found - {""}


def _passwords(address: str) -> Iterator[str]:
    """As they are written in the address, and as they are meant."""
    split = urlsplit(address)
    written = split.netloc.rpartition("@")[0].partition(":")[2]
    yield from (written, unquote(written), *parse_qs(split.query).get("password", ()))
