"""HTTP in and out: the outside of the product, in one table.

`routes` names every call with its types, status and permission; `app` serves it, `openapi` and `docs_page` tell it,
and tests walk it. A handler (`jobs`, `workers`, `node`) gets a decoded, authenticated `Call`, asks a service and hands
back an `Answer`; it holds no rules of its own. Whatever is refused is refused as `application/problem+json`, naming the
field that is wrong.

Guarantees: nothing but the paths open to anybody is answered without a key; a body is counted while it is read; no
trace and no page of HTML goes out as an error; a client that went away is not waited for.
"""

from foliot.api.app import create_app

__all__ = ["create_app"]
