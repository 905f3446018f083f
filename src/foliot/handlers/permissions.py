"""What the built-in handlers may do on this worker, from its settings."""

import logging
import shutil

from msgspec import Struct

from foliot.handlers.command_rules import BadUser, CommandRules, find_user
from foliot.outbound import AllowList, BadEntry
from foliot.settings import Settings, SettingsError

_log = logging.getLogger("foliot.handlers")


class Permissions(Struct, frozen=True, kw_only=True):
    """Without a word: `http` calls public addresses, `command` runs nothing."""

    addresses: AllowList = AllowList()
    commands: CommandRules | None = None

    def tell(self) -> None:
        """What an operator should see in the log when the worker starts."""
        match self.commands:
            case None:
                return
            case CommandRules(programs=None):
                _log.warning(
                    "commands: this worker runs ANY program for everyone who may submit jobs to it; name those that it "
                    "should run with --allow-command instead of --allow-commands"
                )
            case CommandRules(programs=programs):
                _log.info("commands: this worker runs %s and no other program", ", ".join(programs or ()))
                for name in programs or ():
                    if shutil.which(name) is None:
                        _log.warning("commands: %s is allowed but not there now", name)


def permissions_of(settings: Settings) -> Permissions:
    """Raises `SettingsError`."""
    try:
        addresses = AllowList.parse(settings.http_allow)
    except BadEntry as error:
        raise SettingsError(f"http_allow: {error}") from None
    programs = tuple(filter(None, map(str.strip, settings.allow_command.split(","))))
    if programs and settings.allow_commands:
        raise SettingsError("allow_command names programs and allow_commands lets any run: set one of them")
    if not programs and not settings.allow_commands:
        return Permissions(addresses=addresses)
    try:
        user = find_user(settings.command_user)
    except BadUser as error:
        raise SettingsError(f"command_user: {error}") from None
    return Permissions(addresses=addresses, commands=CommandRules(programs=programs or None, user=user))
