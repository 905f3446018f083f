"""A browser's login: the authorization code flow of OpenID Connect, with PKCE (RFC 7636, S256), state and nonce.

Three secrets are made at the beginning. `state` proves that the browser that comes back is the one that was sent, as
long as what is kept is found by that browser's own cookie and used once. `nonce` ties the ID token to this login. The
verifier of PKCE makes a code worthless to whoever else gets hold of it.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from urllib.parse import quote, urlencode

import msgspec
from yarl import URL

from foliot.domain.access import Caller
from foliot.domain.errors import NotAuthenticated, Unavailable
from foliot.oidc.claims import audiences
from foliot.oidc.fetch import ProviderError
from foliot.oidc.provider import Metadata, Provider, log
from foliot.oidc.verifier import Verifier

SCOPES = ("openid", "profile", "email")
WANTED_SCOPE = "groups"  # asked for where the provider has it
LONGEST_CODE = 4096


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    state: str
    nonce: str
    verifier: str


class _TokenAnswer(msgspec.Struct, frozen=True):
    id_token: str


class Login:
    """`redirect_uri` is where the provider sends the browser back to; it knows it as one of this client's."""

    def __init__(
        self, provider: Provider, verifier: Verifier, *, client_id: str, client_secret: str = "", redirect_uri: str
    ) -> None:
        self._provider = provider
        self._verifier = verifier
        self._client_id = client_id
        self._client_secret = client_secret
        self._redirect_uri = redirect_uri

    async def begin(self) -> tuple[str, str]:
        """Where to send the browser, and what to keep for its return: in secret, for that browser alone, for one use
        within minutes. Raises `Unavailable`."""
        metadata = await self._metadata()
        kept = _Kept(state=_secret(), nonce=_secret(), verifier=_secret())
        scopes = [*SCOPES, *({WANTED_SCOPE} & set(metadata.scopes_supported))]
        url = URL(metadata.authorization_endpoint).update_query(
            {
                "response_type": "code",
                "client_id": self._client_id,
                "redirect_uri": self._redirect_uri,
                "scope": " ".join(scopes),
                "state": kept.state,
                "nonce": kept.nonce,
                "code_challenge": _challenge(kept.verifier),
                "code_challenge_method": "S256",
            }
        )
        return str(url), msgspec.json.encode(kept).decode()

    async def finish(self, query: Mapping[str, str], kept: str) -> Caller:
        """Who has logged in, by the query that the browser came back with. Raises `NotAuthenticated` or
        `Unavailable`."""
        try:
            begun = msgspec.json.decode(kept, type=_Kept)
        except msgspec.DecodeError:
            raise NotAuthenticated("This login was not begun here; begin again") from None
        if not _same(query.get("state"), begun.state):
            raise NotAuthenticated("This login was begun by another browser; begin again")
        metadata = await self._metadata()
        self._check_issuer(query, metadata)
        code = query.get("code", "")
        if "error" in query or not 0 < len(code) <= LONGEST_CODE:
            log.info("the identity provider ended a login: %r", query.get("error", "")[:100])
            raise NotAuthenticated("The identity provider did not let you in; begin again")
        claims = await self._verifier.claims(await self._redeem(code, begun, metadata), self._client_id)
        if not _same(claims.get("nonce"), begun.nonce):
            raise NotAuthenticated("This ID token is of another login; begin again")
        authorized = claims.get("azp", self._client_id if len(audiences(claims)) == 1 else None)
        if authorized != self._client_id:
            raise NotAuthenticated("This ID token was made for another client")
        return self._verifier.caller_of(claims)

    def _check_issuer(self, query: Mapping[str, str], metadata: Metadata) -> None:
        """RFC 9207: an answer says which provider it is of, so that one can not pass on another's."""
        given = query.get("iss")
        if given is None and not metadata.authorization_response_iss_parameter_supported:
            return
        if given != metadata.issuer:
            raise NotAuthenticated("This answer is of another identity provider; begin again")

    async def _metadata(self) -> Metadata:
        metadata = await self._provider.metadata()
        if not metadata.authorization_endpoint or not metadata.token_endpoint:
            raise Unavailable("the identity provider has no login for browsers")
        return metadata

    async def _redeem(self, code: str, begun: _Kept, metadata: Metadata) -> str:
        """The ID token for a code."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "code_verifier": begun.verifier,
        }
        headers: dict[str, str] = {}
        methods = metadata.token_endpoint_auth_methods_supported
        if not self._client_secret:
            form |= {"client_id": self._client_id}
        elif "client_secret_post" in methods and "client_secret_basic" not in methods:
            form |= {"client_id": self._client_id, "client_secret": self._client_secret}
        else:
            pair = ":".join(quote(part, safe="") for part in (self._client_id, self._client_secret))
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        try:
            answer = await self._provider.fetch.post(
                metadata.token_endpoint, urlencode(form).encode(), headers, _TokenAnswer
            )
        except ProviderError as error:
            log.warning("the identity provider does not redeem a code: %s", error)
            raise Unavailable("the identity provider does not answer; begin again") from None
        if answer is None:
            raise NotAuthenticated("The identity provider does not take this login any more; begin again")
        return answer.id_token


def _same(given: object, expected: str) -> bool:
    """Takes equally long for every wrong one."""
    return isinstance(given, str) and hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())


def _secret() -> str:
    return secrets.token_urlsafe(32)


def _challenge(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
