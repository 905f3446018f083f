"""Why a call had no answer. Each message can be shown to whoever chose the address."""


class OutboundError(Exception):
    """Base of all."""


class BadAddress(OutboundError):
    """It can not be called by anybody: no http or https address."""


class AddressNotAllowed(OutboundError):
    """It leads where only the operator may let it. Where to is not told: names of a private network would tell it
    to everyone who may name them."""

    def __init__(self, host: str, port: int, what: str, *, entry: str) -> None:
        super().__init__(f"{host}:{port} leads to {what}")
        self.what = what
        self.entry = entry  # what the operator would have to list


class RedirectRefused(OutboundError):
    """The service sends on to where it is not followed."""


class NoAnswer(OutboundError):
    """No connection, or one that broke; another try may succeed."""
