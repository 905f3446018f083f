"""The calls on keys, namespaces and the audit log, and those by which a browser logs in and out."""

from urllib.parse import parse_qsl, quote

from foliot.api.call import Answer, Call
from foliot.api.headers import etag, if_match
from foliot.api.jobs import NoFields
from foliot.api.paging import paged
from foliot.api.query import PageQuery, given
from foliot.api.session import clear_cookie, login_cookie, set_cookie, shown_login, shown_session
from foliot.domain.access import MATRIX
from foliot.domain.errors import Forbidden
from foliot.wire import BASE_PATH, KeyBody, LoginLink, NamespaceBody, QuotasBody, RotateBody, SessionInfo, to_time

LONGEST_QUERY = 16_384
WELCOME = b"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=/docs"><title>Foliot</title>
</head><body><p>You are logged in. <a href="/docs">Go on</a></p></body></html>
"""
POLICY = (
    b"content-security-policy",
    b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
)
NO_REFERRER = (b"referrer-policy", b"no-referrer")


async def create_key(call: Call[KeyBody, None]) -> Answer:
    created = await call.services.keys.create(call.body, call.caller)
    return Answer(created, headers=((b"location", f"{BASE_PATH}/api-keys/{created.key_id}".encode()),))


async def list_keys(call: Call[None, PageQuery]) -> Answer:
    page, cursor = await call.services.keys.page(
        limit=call.query.limit, cursor=given(call.query.cursor), caller=call.caller
    )
    return paged(call, page, cursor)


async def read_key(call: Call[None, None]) -> Answer:
    return Answer(await call.services.keys.read(call.names["key_id"], call.caller))


async def rotate_key(call: Call[RotateBody, None]) -> Answer:
    return Answer(await call.services.keys.rotate(call.names["key_id"], call.body, call.caller))


async def revoke_key(call: Call[None, None]) -> Answer:
    return Answer(await call.services.keys.revoke(call.names["key_id"], call.caller))


async def create_namespace(call: Call[NamespaceBody, None]) -> Answer:
    created = await call.services.keys.create_namespace(call.body, call.caller)
    headers = ((b"location", f"{BASE_PATH}/namespaces/{created.name}".encode()), etag(created.version))
    return Answer(created, headers=headers)


async def list_namespaces(call: Call[None, None]) -> Answer:
    return Answer(await call.services.keys.namespaces(call.caller))


async def read_namespace(call: Call[None, None]) -> Answer:
    namespace = await call.services.keys.namespace(call.names["namespace"], call.caller)
    return Answer(namespace, headers=(etag(namespace.version),))


async def set_quotas(call: Call[QuotasBody, None]) -> Answer:
    namespace = await call.services.keys.set_quotas(
        call.names["namespace"], call.body, if_match=if_match(call.headers), caller=call.caller
    )
    return Answer(namespace, headers=(etag(namespace.version),))


async def delete_namespace(call: Call[None, None]) -> Answer:
    await call.services.keys.delete_namespace(call.names["namespace"], call.caller)
    return Answer(None)


async def list_audit(call: Call[None, PageQuery]) -> Answer:
    page, cursor = await call.services.audit.page(
        limit=call.query.limit, cursor=given(call.query.cursor), caller=call.caller
    )
    return paged(call, page, cursor)


async def check_audit(call: Call[None, None]) -> Answer:
    return Answer(await call.services.audit.check(call.caller))


async def read_session(call: Call[None, None]) -> Answer:
    caller = call.caller
    return Answer(
        SessionInfo(
            name=caller.name,
            namespace=caller.namespace,
            role=caller.role,
            permissions=sorted(MATRIX[caller.role] - {"none"}),
            queues=list(caller.queues),
            job_types=list(caller.job_types),
            csrf_token=call.csrf_token,
        )
    )


async def make_login_link(call: Call[NoFields, None]) -> Answer:
    if call.csrf_token is not None:
        raise Forbidden("a browser's session makes no links for others; use a key: foliot login")
    code, until = await call.services.access.login_link(call.caller)
    return Answer(LoginLink(url=f"{call.address}/login?code={quote(code)}", expires=to_time(until)))


async def use_login_link(call: Call[None, None]) -> Answer:
    shown = await call.services.access.use_link(_query(call).get("code", ""), call.source)
    return _let_in(call, shown)


async def begin_login(call: Call[None, None]) -> Answer:
    address, shown = await call.services.access.begin_login(call.source)
    headers = ((b"location", address.encode("ascii")), login_cookie(shown, secure=call.secure), NO_REFERRER)
    return Answer(None, headers=headers)


async def finish_login(call: Call[None, None]) -> Answer:
    shown = await call.services.access.finish_login(shown_login(call.headers), _query(call), call.source)
    return _let_in(call, shown)


def _let_in(call: Call[None, None], shown: str) -> Answer:
    """By a page of our own: a browser that was sent here from elsewhere shows the cookie only from the next step on."""
    return Answer(
        WELCOME,
        content_type=b"text/html; charset=utf-8",
        headers=(set_cookie(shown, secure=call.secure), POLICY, NO_REFERRER),
    )


def _query(call: Call[None, None]) -> dict[str, str]:
    """What came in the address, without a say in what there may be: the provider adds words of its own."""
    return dict(parse_qsl(call.query_string[:LONGEST_QUERY].decode("latin-1")))


async def log_out(call: Call[NoFields, None]) -> Answer:
    shown = shown_session(call.headers)
    if shown is not None:
        await call.services.access.end_session(shown)
    return Answer(None, headers=(clear_cookie(secure=call.secure),))
