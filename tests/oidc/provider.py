"""A small identity provider: `python -m tests.oidc.provider`, which tells its address.

The protocol is Authlib's: what a client may ask for, codes that are good once, PKCE, ID tokens. So our login is tried
against somebody else's reading of the specifications. Under `/control` a test rotates keys, has any token signed, and
sees who asked for what.
"""

import logging
import os
import secrets
import sys
import threading
from collections import Counter
from typing import Any

import flask
import werkzeug.serving
from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import grants
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.core import OpenIDCode, UserInfo
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt import get_algorithm_by_name
from msgspec import Struct

CLIENT_ID = "foliot"
CLIENT_SECRET = "a secret: with/odd+characters"
PUBLIC_CLIENT_ID = "foliot-public"
FORM_CLIENT_ID = "foliot-form"
USERS: dict[str, dict[str, Any]] = {
    "alice": {"sub": "248289761001", "preferred_username": "alice", "groups": ["staff", "ops"]},
    "bob": {"sub": "248289761002", "email": "bob@example.org", "email_verified": True, "groups": ["dev"]},
    "carol": {"sub": "248289761003", "preferred_username": "carol", "groups": ["staff"]},
}


def make_private_key(algorithm: str) -> Any:
    match algorithm:
        case "ES256":
            return ec.generate_private_key(ec.SECP256R1())
        case "ES384":
            return ec.generate_private_key(ec.SECP384R1())
        case "EdDSA":
            return ed25519.Ed25519PrivateKey.generate()
        case _:
            return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Key:
    def __init__(self, algorithm: str) -> None:
        self.algorithm = algorithm
        self.key_id = secrets.token_hex(8)
        self.private = make_private_key(algorithm)

    @property
    def public_jwk(self) -> dict[str, Any]:
        jwk = get_algorithm_by_name(self.algorithm).to_jwk(self.private.public_key(), as_dict=True)
        jwk.pop("key_ops", None)
        return {**jwk, "kid": self.key_id, "alg": self.algorithm, "use": "sig"}


class Keys:
    """The last one signs; all are published."""

    def __init__(self) -> None:
        self._first = Key("RS256")
        self.all = [self._first]

    @property
    def signing(self) -> Key:
        return self.all[-1]

    def rotate(self, algorithm: str) -> Key:
        self.all.append(Key(algorithm))
        return self.signing

    def withdraw(self, key_id: str) -> None:
        self.all = [key for key in self.all if key.key_id != key_id]

    def reset(self) -> None:
        self.all = [self._first]


class Client:
    def __init__(self, client_id: str, client_secret: str, method: str) -> None:
        self.client_id = client_id
        self._secret = client_secret
        self._method = method

    def get_client_id(self) -> str:
        return self.client_id

    def get_default_redirect_uri(self) -> str:
        return ""

    def get_allowed_scope(self, scope: str) -> str:
        return scope

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri.endswith("/auth/callback")

    def check_client_secret(self, client_secret: str) -> bool:
        return secrets.compare_digest(client_secret, self._secret)

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == self._method

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == "authorization_code"


class Code:
    def __init__(self, request: Any) -> None:
        data = request.payload.data
        self.client_id: str = request.client.client_id
        self.user: str = request.user
        self.redirect_uri: str = request.payload.redirect_uri
        self.scope: str = request.payload.scope
        self.nonce: str | None = data.get("nonce")
        self.code_challenge = data.get("code_challenge")
        self.code_challenge_method = data.get("code_challenge_method")

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope

    def get_nonce(self) -> str | None:
        return self.nonce

    def get_auth_time(self) -> None: ...

    def get_acr(self) -> None: ...

    def get_amr(self) -> None: ...


CODES: dict[str, Code] = {}
CLIENTS = {
    client.client_id: client
    for client in (
        Client(CLIENT_ID, CLIENT_SECRET, "client_secret_basic"),
        Client(FORM_CLIENT_ID, CLIENT_SECRET, "client_secret_post"),
        Client(PUBLIC_CLIENT_ID, "", "none"),
    )
}


class CodeGrant(grants.AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS: list[str] = ["client_secret_basic", "client_secret_post", "none"]  # noqa: RUF012

    def save_authorization_code(self, code: str, request: Any) -> None:
        CODES[code] = Code(request)

    def query_authorization_code(self, code: str, client: Any) -> Code | None:
        found = CODES.get(code)
        return found if found is not None and found.client_id == client.client_id else None

    def delete_authorization_code(self, authorization_code: Code) -> None:
        for code in [code for code, kept in CODES.items() if kept is authorization_code]:
            del CODES[code]

    def authenticate_user(self, authorization_code: Code) -> str:
        return authorization_code.user


class IdTokens(OpenIDCode):
    def __init__(self, keys: Keys) -> None:
        super().__init__(require_nonce=True)
        self._keys = keys
        self.changes: dict[str, Any] = {}  # what ID tokens say instead

    def exists_nonce(self, nonce: str, request: Any) -> bool:
        return any(code.nonce == nonce for code in CODES.values())

    def get_client_algorithm(self, client: Client) -> str:
        return self._keys.signing.algorithm

    def get_encode_header(self, client: Client) -> dict[str, str]:
        return {"alg": self._keys.signing.algorithm, "kid": self._keys.signing.key_id}

    def resolve_client_private_key(self, client: Client) -> Any:
        key = self._keys.signing
        return get_algorithm_by_name(key.algorithm).to_jwk(key.private, as_dict=True)

    def get_client_claims(self, client: Client) -> dict[str, Any]:
        return {"iss": issuer(), "aud": client.client_id}

    def generate_user_info(self, user: str, scope: str) -> UserInfo:
        return UserInfo(USERS[user] | self.changes)


class Misbehaviour(Struct):
    """What a path answers with instead of the truth."""

    status: int = 200
    headers: dict[str, str] = {}
    body: str = ""


def issuer() -> str:
    return flask.request.host_url.rstrip("/")


def make_app() -> flask.Flask:
    app = flask.Flask(__name__)
    keys, hits, wrongs = Keys(), Counter[str](), dict[str, Misbehaviour]()
    server = AuthorizationServer(app, query_client=CLIENTS.get, save_token=lambda token, request: None)
    id_tokens = IdTokens(keys)
    server.register_grant(CodeGrant, [CodeChallenge(required=True), id_tokens])

    @app.before_request
    def count() -> Any:
        path = flask.request.path
        hits[path] += 1
        if (wrong := wrongs.get(path)) is not None:
            return flask.Response(wrong.body, wrong.status, wrong.headers)
        return None

    @app.get("/.well-known/openid-configuration")
    def discovery() -> Any:
        return {
            "issuer": issuer(),
            "authorization_endpoint": f"{issuer()}/authorize",
            "token_endpoint": f"{issuer()}/token",
            "jwks_uri": f"{issuer()}/jwks",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "ES256"],
            "scopes_supported": ["openid", "profile", "email", "groups"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "none"],
            "code_challenge_methods_supported": ["S256"],
        }

    @app.get("/jwks")
    def jwks() -> Any:
        return {"keys": [key.public_jwk for key in keys.all]}

    @app.get("/authorize")
    def authorize() -> Any:
        grant = server.get_consent_grant(end_user=None)
        user = flask.request.headers.get("X-User")  # who sits before the browser
        return server.create_authorization_response(grant=grant, grant_user=user)

    @app.post("/token")
    def token() -> Any:
        return server.create_token_response()

    @app.post("/control/rotate")
    def rotate() -> Any:
        return keys.rotate(flask.request.args["algorithm"]).public_jwk

    @app.post("/control/withdraw")
    def withdraw() -> Any:
        keys.withdraw(flask.request.args["key_id"])
        return {}

    @app.post("/control/sign")
    def sign() -> Any:
        """Whatever is asked for, by any of the keys."""
        algorithm, key_id = flask.request.args["algorithm"], flask.request.args["key_id"]
        (key,) = [key for key in keys.all if key.key_id == key_id]
        return get_algorithm_by_name(algorithm).sign(flask.request.get_data(), key.private)

    @app.post("/control/wrong")
    def wrong() -> Any:
        wrongs[flask.request.args["path"]] = Misbehaviour(**(flask.request.get_json()))
        return {}

    @app.post("/control/id-token")
    def change_id_token() -> Any:
        id_tokens.changes = flask.request.get_json()
        return {}

    @app.post("/control/reset")
    def reset() -> Any:
        """As if it had just started."""
        keys.reset()
        wrongs.clear()
        hits.clear()
        id_tokens.changes = {}
        return {}

    @app.get("/control/hits")
    def count_hits() -> Any:
        return dict(hits)

    return app


def main(certificate: str | None = None) -> None:
    threading.Thread(target=_end_with_the_test, daemon=True).start()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    context = (certificate, certificate) if certificate else None
    server = werkzeug.serving.make_server("127.0.0.1", 0, make_app(), threaded=True, ssl_context=context)
    print(f"{'https' if certificate else 'http'}://127.0.0.1:{server.port}", flush=True)
    server.serve_forever()


def _end_with_the_test() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
