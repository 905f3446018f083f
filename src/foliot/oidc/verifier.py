"""From a token to its caller."""

import logging
from collections.abc import Mapping
from typing import Any

from foliot.clock import Clock
from foliot.domain.access import ADMIN, Caller
from foliot.domain.errors import NotAuthenticated
from foliot.oidc.claims import check_audience, check_issuer, check_times, subject_of
from foliot.oidc.provider import Provider
from foliot.oidc.role_rules import RoleRules
from foliot.oidc.token import read_token

LONGEST_NAME = 128  # as long as a job's owner may be
NAMES = ("preferred_username", "email", "sub")

log = logging.getLogger("foliot.oidc")


class Verifier:
    """Believes the tokens that `provider` made for `audience`, and gives their bearers what the rules say."""

    def __init__(self, provider: Provider, clock: Clock, *, audience: str, rules: RoleRules) -> None:
        self._provider = provider
        self._clock = clock
        self._audience = audience
        self._rules = rules

    async def caller(self, token: str) -> Caller:
        """Raises `NotAuthenticated`, or `Unavailable` where the provider's keys can not be had."""
        return self.caller_of(await self.claims(token, self._audience))

    async def claims(self, text: str, audience: str) -> dict[str, Any]:
        """What a good token says. Raises as `caller` does."""
        token = read_token(text)
        check_issuer(token.claims, self._provider.issuer)  # before the provider is asked for a stranger's key
        if not await self._provider.has_signed(token):
            raise NotAuthenticated("This token was not signed by the identity provider")
        check_audience(token.claims, audience)
        check_times(token.claims, self._clock.now())
        subject_of(token.claims)
        return token.claims

    def caller_of(self, claims: Mapping[str, Any]) -> Caller:
        """Of claims that are to be believed. Raises `NotAuthenticated` where no rule matches."""
        rule = self._rules.first_match(claims)
        if rule is None:
            log.warning("%r was not let in: no rule of oidc_roles matches", subject_of(claims))
            raise NotAuthenticated("The identity provider knows you, but nothing here is open to you; ask an operator")
        return Caller(
            name=_name(claims), namespace=rule.namespace, role=rule.role, subject=subject_of(claims)[:LONGEST_NAME]
        )


def _name(claims: Mapping[str, Any]) -> str:
    """For people to read. Some may choose it for themselves, so it must not pass for the node's own key."""
    for claim in NAMES:
        name = claims.get(claim)
        if isinstance(name, str) and name.isprintable() and (name := name.strip()):
            own = name.casefold() == ADMIN.name
            return (f"{name} ({subject_of(claims)})" if own else name)[:LONGEST_NAME]
    return subject_of(claims)[:LONGEST_NAME]
