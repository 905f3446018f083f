"""Load, decide, save: what the product does, between the outside (`api`, `node`) and the store.

Each service loads what it needs, lets `domain` decide, saves in a group commit, and tells whoever waits (`wake`).
Services hold no truth of their own: any node may do any of it, at the same time as others. They speak the types of
`wire`, and raise the errors of `domain.errors`; a change that lost against another one is decided anew from what is
there then.
"""

from foliot.service.services import Services

__all__ = ["Services"]
