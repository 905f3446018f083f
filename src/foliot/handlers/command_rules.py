"""Which programs a worker runs, as whom, and with what around them."""

import os
import pwd
import shutil
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

KEPT = frozenset({"PATH", "HOME", "LANG", "TZ", "TMPDIR"})
KEPT_PREFIX = "LC_"
USUAL_PATH = "/usr/local/bin:/usr/bin:/bin"

# Variables by which a program that is allowed can be made to run code that is not: the loader's, the interpreters',
# the shells', those that name other programs, and where it finds its own settings.
STEERING = frozenset(
    {
        "CLASSPATH", "EDITOR", "ENV", "GCONV_PATH", "HOME", "IFS", "LESSCLOSE", "LESSOPEN", "LOCPATH", "MANPAGER",
        "NLSPATH", "PAGER", "PATH", "PHPRC", "PHP_INI_SCAN_DIR", "PS4", "SHELL", "SHELLOPTS", "SSLKEYLOGFILE",
        "TERMINFO", "TMPDIR", "VISUAL",
    }
)  # fmt: skip
STEERING_PREFIXES = (
    "BASH", "CURL_", "DYLD_", "GIT_", "GLIBC_", "JAVA_", "JDK_", "LD_", "LUA_", "MALLOC_", "NODE_", "NPM_CONFIG_",
    "OPENSSL_", "PERL", "PYTHON", "RSYNC_", "RUBY", "SSH_", "TCLLIB", "XDG_", "ZDOTDIR", "_JAVA_", "_RLD",
)  # fmt: skip


class BadUser(ValueError):
    """A user that programs can not run as; the message says what to set."""


class User(Struct, frozen=True, kw_only=True):
    """Another user than the worker's own."""

    number: int
    group: int
    groups: tuple[int, ...]
    home: str


class CommandRules(Struct, frozen=True, kw_only=True):
    """`programs` None: any. `user` None: the worker's own."""

    programs: tuple[str, ...] | None = None
    user: User | None = None

    def find(self, name: str, folder: str | None) -> str | None:
        """What to start for a job's `argv[0]`; None where that is not allowed.

        Two are the same program where they have the same real path and the same name: one file may be many programs,
        told apart by the name that they are called by. Started is the path that the operator has named, which nobody
        else can make lead elsewhere.
        """
        if self.programs is None:
            return name
        wanted = _identity(_path(name, folder))
        named = (_path(word, None) for word in self.programs)
        return next((path for path in named if wanted is not None and _identity(path) == wanted), None)

    def steering(self, given: Mapping[str, str]) -> str | None:
        """A variable that a job may not set where programs are named, if it does."""
        if self.programs is None:
            return None
        names = sorted(given)
        return next((n for n in names if n.upper() in STEERING or n.upper().startswith(STEERING_PREFIXES)), None)

    def environment(self, given: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
        """Nothing of the worker's own that could be a secret."""
        kept = {name: value for name, value in own.items() if name in KEPT or name.startswith(KEPT_PREFIX)}
        kept.setdefault("PATH", USUAL_PATH)
        if self.user is not None:
            kept["HOME"] = self.user.home
        return kept | dict(given)


def find_user(name: str) -> User | None:
    """Who programs run as; None for the worker's own user. Raises `BadUser`. Root's worker must be told: nobody
    should come to run programs as root by leaving something out."""
    own = os.geteuid()
    if not name:
        if own == 0:
            raise BadUser(
                "this worker runs as root: name the user that programs run as, as in --command-user nobody "
                "(--command-user root if it has to be root)"
            )
        return None
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise BadUser(f"there is no user {name!r}") from None
    if found.pw_uid == own:
        return None
    if own != 0:
        raise BadUser(f"only a worker that runs as root can run programs as {name}")
    groups = os.getgrouplist(name, found.pw_gid)
    return User(number=found.pw_uid, group=found.pw_gid, groups=tuple(groups), home=found.pw_dir)


def _path(name: str, folder: str | None) -> str | None:
    """Where a program lies, by the worker's own PATH and never by the job's."""
    if "/" in name:
        return str(Path(folder or ".", name).absolute())
    return shutil.which(name, path=os.environ.get("PATH", USUAL_PATH))


def _identity(path: str | None) -> tuple[str, str] | None:
    return (os.path.realpath(path), Path(path).name) if path else None
