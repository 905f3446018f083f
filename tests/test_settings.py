"""Settings: where they come from, which place wins, and what is refused."""

from base64 import b64encode
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from foliot.cli.encryption_key import new_encryption_key
from foliot.settings import Settings, SettingsError, load_settings

NAMES = [field.name for field in msgspec.structs.fields(Settings)]
POSTGRES = "postgresql://foliot@db/foliot"
KEY = b64encode(bytes(range(32))).decode()
OTHER_VALUES: dict[str, Any] = {
    "host": "::1",
    "port": 8080,
    "database": POSTGRES,
    "data_dir": "elsewhere",
    "worker": False,
    "resources": "cpu=4,memory=8Gi",
    "labels": "zone=eu",
    "worker_concurrency": 3,
    "processes": 2,
    "allow_commands": True,
    "allow_command": "rsync,/usr/local/bin/backup.sh",
    "command_user": "nobody",
    "http_allow": "10.0.0.0/8,localhost:8080",
    "admin_key": "k" * 32,
    "encryption_keys": f"b:{KEY},a:{KEY}",
    "oidc_issuer": "https://login.example",
    "oidc_audience": "jobs",
    "oidc_client_id": "foliot",
    "oidc_client_secret": "secret",
    "oidc_roles": "groups:ops=operator",
    "lease_seconds": 60.5,
    "heartbeat_seconds": 2.5,
    "retention_days": 7.0,
    "events": False,
    "event_hours": 1.5,
    "tls_cert": "node.pem",
    "tls_key": "node.key",
    "tls_client_ca": "workers.pem",
    "insecure": True,
    "max_connections": 5,
    "client_seconds": 1.5,
    "ca_file": "ca.pem",
    "client_cert": "me.pem",
    "client_key": "me.key",
    "url": "https://jobs.example",
    "log_level": "debug",
    "log_format": "json",
    "otlp_endpoint": "http://collector:4318",
}

NEEDED = {  # what does not work alone
    "processes": ("database",),
    **dict.fromkeys(("tls_cert", "tls_key", "tls_client_ca"), ("tls_cert", "tls_key")),
    **dict.fromkeys(("client_cert", "client_key"), ("client_cert", "client_key")),
    **{name: ("oidc_issuer", "oidc_audience", "oidc_roles") for name in OTHER_VALUES if name.startswith("oidc_")},
}


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str, name: str = "foliot.toml") -> Path:
    file = Path(name)
    file.write_text(text)
    return file


def refused(
    given: dict[str, Any] | None = None, environ: dict[str, str] | None = None, file: Path | None = None
) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(given, environ or {}, file)
    return str(caught.value)


# where they come from


def test_without_anything_set_there_are_defaults() -> None:
    assert load_settings(environ={}) == Settings()


def test_the_command_line_beats_the_environment_and_that_the_file() -> None:
    write('port = 1\nhost = "file"\nlog_level = "debug"\n')
    environ = {"FOLIOT_PORT": "2", "FOLIOT_HOST": "environment"}
    settings = load_settings({"port": 3, "host": None}, environ)
    assert (settings.port, settings.host, settings.log_level) == (3, "environment", "debug")


def test_the_process_environment_is_read_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_PORT", "4711")
    assert load_settings().port == 4711


def test_an_empty_variable_counts_as_not_set() -> None:
    assert load_settings(environ={"FOLIOT_PORT": "", "FOLIOT_CONFIG": ""}) == Settings()


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_has_its_variable_and_its_line_in_the_file(name: str) -> None:
    value = OTHER_VALUES[name]
    assert value != getattr(Settings(), name)
    given = {needed: OTHER_VALUES[needed] for needed in NEEDED.get(name, ()) if needed != name}
    from_environment = load_settings(given, {f"FOLIOT_{name.upper()}": str(value)})
    from_file = load_settings(given, {}, write(f"{name} = {msgspec.json.encode(value).decode()}"))
    assert getattr(from_environment, name) == getattr(from_file, name) == value
    assert type(getattr(from_environment, name)) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", True), ("true", True), ("YES", True), ("on", True), ("0", False), ("False", False), ("no", False)],
)
def test_a_switch_may_be_said_in_several_ways(text: str, value: bool) -> None:
    assert load_settings(environ={"FOLIOT_WORKER": text, "FOLIOT_ALLOW_COMMANDS": text}).worker is value


def test_a_file_may_be_named_by_the_command_line_or_the_environment() -> None:
    write("port = 1")
    other, third = write("port = 2", "other.toml"), write("port = 3", "third.toml")
    assert load_settings(environ={"FOLIOT_CONFIG": str(other)}).port == 2
    assert load_settings(environ={"FOLIOT_CONFIG": str(other)}, file=third).port == 3


def test_what_a_worker_offers_is_read_as_pairs() -> None:
    settings = load_settings({"resources": "cpu=4, memory = 8Gi,", "labels": "zone=eu,query=a=b"}, {})
    assert settings.worker_resources == {"cpu": "4", "memory": "8Gi"}
    assert settings.worker_labels == {"zone": "eu", "query": "a=b"}
    assert load_settings({}, {}).worker_resources == load_settings({}, {}).worker_labels == {}


# what is refused


def test_a_file_that_was_asked_for_must_be_there() -> None:
    assert refused(file=Path("none.toml")) == "none.toml is not there"
    assert refused(environ={"FOLIOT_CONFIG": "none.toml"}) == "none.toml is not there"


def test_a_file_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    assert refused(file=tmp_path).startswith(f"{tmp_path} can not be read: ")


def test_a_file_that_is_no_toml_is_named() -> None:
    assert refused(file=write("port: 7")).startswith("foliot.toml is not valid TOML: ")
    Path("binary.toml").write_bytes(b"host = '\xff'")
    assert refused(file=Path("binary.toml")) == "binary.toml is not UTF-8 text"


def test_an_unknown_line_of_the_file_is_refused_with_the_settings_there_are() -> None:
    message = refused(file=write("prot = 7070"))
    assert message.startswith("foliot.toml: there is no setting 'prot'")
    assert [name for name in NAMES if name not in message] == []


@pytest.mark.parametrize(
    ("name", "value", "type_"),
    [("PORT", "http", "int"), ("WORKER", "maybe", "bool"), ("LEASE_SECONDS", "30s", "float")],
)
def test_a_value_of_the_wrong_type_is_refused_by_name(name: str, value: str, type_: str) -> None:
    message = refused(environ={f"FOLIOT_{name}": value})
    assert message == f"FOLIOT_{name} is {value!r}; it must be of type {type_}"


def test_a_wrong_value_of_the_file_is_refused_by_file_and_name() -> None:
    assert refused(file=write("port = true")) == "foliot.toml: port is True; it must be of type int"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"port": -1}, "port is -1; it must be 0 to 65535"),
        ({"port": 65536}, "port is 65536; it must be 0 to 65535"),
        ({"heartbeat_seconds": 0}, "heartbeat_seconds is 0; it must be more than 0"),
        ({"heartbeat_seconds": float("nan")}, "heartbeat_seconds is nan; it must be more than 0"),
        ({"lease_seconds": float("inf")}, "lease_seconds is inf; it must be more than 0"),
        ({"retention_days": -1}, "retention_days is -1; it must be more than 0"),
        ({"lease_seconds": 19.9}, "lease_seconds (19.9) must be at least twice heartbeat_seconds (10)"),
        ({"worker_concurrency": 0}, "worker_concurrency is 0; it must be 1 or more"),
        ({"max_connections": 0}, "max_connections is 0; it must be 1 or more"),
        ({"client_seconds": 0}, "client_seconds is 0; it must be more than 0"),
        ({"tls_cert": "node.pem"}, "tls_cert and tls_key go together"),
        ({"tls_key": "node.key"}, "tls_cert and tls_key go together"),
        ({"client_cert": "me.pem"}, "client_cert and client_key go together"),
        ({"tls_client_ca": "workers.pem"}, "tls_client_ca is set, but no tls_cert"),
        ({"resources": "cpu"}, "resources is 'cpu'; it must be names with values, as in a=1,b=2"),
        ({"labels": "zone=eu,=x"}, "labels is 'zone=eu,=x'; it must be names with values"),
        ({"log_level": "loud"}, "log_level is 'loud'; use debug, info, warning, error"),
        ({"log_format": "xml"}, "log_format is 'xml'; use auto, text, json"),
        ({"otlp_endpoint": "collector:4317"}, "otlp_endpoint is 'collector:4317'; use a collector's address"),
        ({"otlp_endpoint": "grpc://me:pw@collector"}, "otlp_endpoint is 'grpc://me:***@collector'"),
        ({"processes": 0}, "processes is 0; it must be 1 or more"),
        ({"processes": 2}, "more than one process needs PostgreSQL"),
        ({"database": "mysql://db/foliot"}, "database is 'mysql://db/foliot'; use postgresql://"),
        ({"admin_key": "k" * 15}, "admin_key is shorter than 16 characters"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_what_can_not_work_is_refused_with_what_would(given: dict[str, Any], told: str) -> None:
    assert refused(given).startswith(told)


@pytest.mark.parametrize(
    "given",
    [
        {"port": 0},
        {"port": 65535},
        {"lease_seconds": 20},
        {"lease_seconds": 1, "heartbeat_seconds": 0.5},
        {"processes": 2, "database": POSTGRES},
        {"database": "postgres://db/foliot"},
        {"database": "sqlite:///jobs.db"},
        {"admin_key": "k" * 16},
    ],
    ids=str,
)
def test_what_can_just_work_is_taken(given: dict[str, Any]) -> None:
    settings = load_settings(given, {})
    assert {name: getattr(settings, name) for name in given} == given


def test_a_message_never_tells_the_admin_key() -> None:
    assert "secret" not in refused({"admin_key": "secret"})


# what follows from them


def test_without_a_database_jobs_are_kept_in_the_data_folder() -> None:
    assert Settings(data_dir="data").store_url == "sqlite:///data/foliot.db"
    assert Settings(data_dir="/var/lib/foliot").store_url == "sqlite:////var/lib/foliot/foliot.db"
    assert Settings().is_sqlite
    assert Settings(database=POSTGRES).store_url == POSTGRES
    assert not Settings(database=POSTGRES).is_sqlite


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:7070"),
        ("0.0.0.0", "http://127.0.0.1:7070"),
        ("", "http://127.0.0.1:7070"),
        ("::", "http://127.0.0.1:7070"),
        ("::1", "http://[::1]:7070"),
        ("jobs.example", "http://jobs.example:7070"),
    ],
)
def test_clients_find_the_node_where_it_listens(host: str, url: str) -> None:
    assert Settings(host=host).node_url == url


def test_clients_find_the_node_where_its_url_says() -> None:
    assert Settings(url="https://jobs.example", host="::").node_url == "https://jobs.example"


# what is secret


def test_encryption_keys_are_a_ring_of_ids_and_keys_the_first_one_first() -> None:
    settings = load_settings(environ={"FOLIOT_ENCRYPTION_KEYS": f" 2026b:{KEY}, 2026a:{KEY} ,"})
    assert settings.key_ring == [("2026b", bytes(range(32))), ("2026a", bytes(range(32)))]
    assert load_settings(environ={}).key_ring == []


@pytest.mark.parametrize(
    "keys", [KEY, f":{KEY}", f"{KEY}:2026a", f"a b:{KEY}", f"a:{KEY[:-8]}", "a:#", "a:", f"a:{KEY},{KEY}"]
)
def test_a_bad_encryption_key_is_refused_with_how_to_make_one_and_without_itself(keys: str) -> None:
    message = refused(environ={"FOLIOT_ENCRYPTION_KEYS": keys})
    assert "foliot keys new-encryption-key" in message
    assert KEY[:8] not in message


def test_an_id_stands_for_one_key() -> None:
    assert "'a' is there twice" in refused(environ={"FOLIOT_ENCRYPTION_KEYS": f"a:{KEY},a:{KEY}"})


def test_what_the_key_command_prints_is_a_key_ring() -> None:
    found = [CliRunner().invoke(new_encryption_key).output for _ in range(2)]
    assert len(load_settings(environ={"FOLIOT_ENCRYPTION_KEYS": ",".join(found)}).key_ring) == 2


def test_settings_never_show_their_secrets() -> None:
    settings = Settings(
        database="postgresql://user:pa@ss/word@db/foliot?password=hunter2",
        admin_key="hunter2" * 3,
        oidc_client_secret="hunter2",
        encryption_keys=f"a:{KEY}",
    )
    shown = repr(settings)
    assert "user:***@db/foliot?password=***" in shown
    for secret in ("hunter2", "pa@ss", "ss/word", KEY):
        assert secret not in shown


@pytest.mark.parametrize("name", ["admin_key", "encryption_keys"])
def test_a_secret_of_the_wrong_type_is_not_shown(name: str) -> None:
    write(f"{name} = 987654321987654321")
    message = refused()
    assert name in message
    assert "987654321" not in message


def test_an_address_that_can_not_be_used_is_told_without_its_password() -> None:
    message = refused({"database": "mysql://user:hunter2@db/foliot"})
    assert "mysql://user:***@db/foliot" in message
    assert "hunter2" not in message
