"""Namespaces and their quotas."""

import msgspec

from foliot.domain.tenancy import NO_QUOTAS, Namespace, Quotas


def test_a_new_namespace_has_no_limits() -> None:
    namespace = Namespace(name="shop", created=5)
    assert namespace.quotas == NO_QUOTAS == Quotas()
    assert namespace.version == 1
    assert set(msgspec.structs.astuple(NO_QUOTAS)) == {None}


def test_quotas_are_kept_as_what_was_set() -> None:
    quotas = Quotas(live_jobs=5)
    assert msgspec.json.encode(quotas) == b'{"live_jobs":5}'
    assert msgspec.json.decode(b'{"live_jobs":5}', type=Quotas) == quotas
    assert msgspec.json.encode(NO_QUOTAS) == b"{}"
