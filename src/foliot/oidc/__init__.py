"""Callers whom an identity provider vouches for (OpenID Connect): tokens that programs send, and the login of browsers.

The operator names one provider by its issuer; where its keys are is found by discovery. A token is believed only when
one of those keys has signed it, for us, and for now. What it says of its bearer is then matched with the operator's
rules; who matches none is not let in. Nothing in a token chooses how it is checked: the algorithms are listed here, the
keys are the provider's, and a token that brings a key or an address of one is refused.

Whatever goes wrong ends in `NotAuthenticated`; in `Unavailable` where the provider's keys can not be had. Neither lets
anybody in.
"""

from foliot.oidc.login import Login
from foliot.oidc.provider import Provider
from foliot.oidc.relying_party import RelyingParty
from foliot.oidc.role_rules import RoleRules
from foliot.oidc.verifier import Verifier

__all__ = ["Login", "Provider", "RelyingParty", "RoleRules", "Verifier"]
