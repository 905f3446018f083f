"""All of it together, as the settings say."""

from typing import Self

from foliot.clock import Clock
from foliot.oidc.fetch import ProviderError
from foliot.oidc.login import Login
from foliot.oidc.provider import Provider
from foliot.oidc.role_rules import RoleRules
from foliot.oidc.verifier import Verifier
from foliot.settings import Settings, SettingsError

CALLBACK = "/auth/callback"


class RelyingParty:
    """Belongs to the loop that it is first used in. `login` is None where no client id is set: then only tokens are
    taken."""

    def __init__(self, provider: Provider, verifier: Verifier, login: Login | None) -> None:
        self.provider = provider
        self.verifier = verifier
        self.login = login

    @classmethod
    def of(cls, settings: Settings, clock: Clock) -> Self | None:
        """None where no issuer is set. Asks nobody yet: a node starts without its provider too. Raises
        `SettingsError`."""
        if not settings.oidc_issuer:
            return None
        rules = RoleRules.parse(settings.oidc_roles)
        try:
            provider = Provider(settings.oidc_issuer, clock)
        except ProviderError as error:
            raise SettingsError(f"oidc_issuer: {error}; http is for an issuer on this machine only") from None
        verifier = Verifier(provider, clock, audience=settings.oidc_audience or settings.oidc_client_id, rules=rules)
        if not settings.oidc_client_id:
            return cls(provider, verifier, None)
        login = Login(
            provider,
            verifier,
            client_id=settings.oidc_client_id,
            client_secret=settings.oidc_client_secret,
            redirect_uri=settings.node_url.rstrip("/") + CALLBACK,
        )
        return cls(provider, verifier, login)

    async def close(self) -> None:
        await self.provider.close()
