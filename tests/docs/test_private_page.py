"""How to keep payloads private: what the page says of secret fields is so."""

import json
from typing import Any

from foliot import Foliot
from foliot.settings import Settings
from foliot.wire import FilterBody
from tests.docs.pages import blocks
from tests.docs.shell import Reader

PAGE = "docs/how-to/keep-payloads-private.md"


def test_the_page_submits_a_job_whose_password_no_read_shows(reader: Reader) -> None:
    submit, *_ = blocks(PAGE, "sh")
    shown = reader.type(f"export FOLIOT_URL={reader.url}\n{submit}")
    job = json.loads(shown.partition("\n")[2])
    assert job["payload"] == {"user": "ann", "db": {"host": "h", "password": "***"}}
    assert "hunter2" not in shown


def test_the_page_makes_a_key_that_a_node_takes(reader: Reader) -> None:
    _, make, *_ = blocks(PAGE, "sh")
    [(key_id, key)] = Settings(encryption_keys=reader.type(make).strip()).key_ring
    assert key_id
    assert len(key) == 32


def test_the_pages_python_declares_a_job_with_a_secret_argument(reader: Reader) -> None:
    (program,) = blocks(PAGE, "python")
    app = Foliot(reader.url, reader.key)
    names: dict[str, Any] = {"app": app}
    try:
        exec(program, names)
        names["log_in"].submit("ann", password="hunter2")
        (job,) = app.client.list(FilterBody(job_type="log_in"))
        assert app.client.get(job.job_id).secret_fields == ["password"]
        assert b"hunter2" not in bytes(app.client.get(job.job_id).payload)  # type: ignore[arg-type]
    finally:
        app.close()
