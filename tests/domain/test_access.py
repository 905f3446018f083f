"""Who may do what, and how far a narrowed caller reaches."""

from typing import get_args

import pytest

from foliot.domain.access import ADMIN, MATRIX, PERMISSIONS, ROLES, Caller, Permission, Role
from foliot.domain.errors import Forbidden
from foliot.domain.job import Lane

HERE = Lane("default", "mail", "send")


def test_every_role_and_every_permission_is_in_the_matrix() -> None:
    assert set(MATRIX) == set(ROLES) == set(get_args(Role))
    assert set(PERMISSIONS) == set(get_args(Permission)) == frozenset[Permission]().union(*MATRIX.values())
    assert all(PERMISSIONS.values())


def may(role: Role) -> set[Permission]:
    caller = Caller(name="ann", role=role)
    return {permission for permission in PERMISSIONS if caller.may(permission)}


def test_each_role_may_more_than_the_one_before_and_an_admin_everything() -> None:
    assert may("viewer") < may("submitter") < may("operator") < may("admin") == set(PERMISSIONS)


def test_only_an_admin_manages_and_only_workers_and_admins_work() -> None:
    assert [role for role in ROLES if "manage" in may(role)] == ["admin"]
    assert {role for role in ROLES if "work" in may(role)} == {"admin", "worker"}
    assert not may("worker") & {"submit", "control", "manage"}
    assert not may("viewer") & {"submit", "control", "work", "manage"}


def test_the_nodes_own_key_is_the_only_root() -> None:
    assert ADMIN.root
    assert ADMIN.role == "admin"
    assert not Caller(name="ann").root


def test_a_caller_reaches_its_namespace_and_no_other() -> None:
    caller = Caller(name="ann")
    assert not caller.narrowed
    assert caller.reaches(HERE)
    assert not caller.reaches(Lane("other", "mail", "send"))
    caller.check_reach(HERE)
    caller.check_whole("the audit log")


@pytest.mark.parametrize(
    ("caller", "reached"),
    [
        (Caller(name="ann", queues=("mail", "post")), [HERE, Lane("default", "mail", "read")]),
        (Caller(name="ann", job_types=("send",)), [HERE, Lane("default", "fax", "send")]),
        (Caller(name="ann", queues=("mail",), job_types=("send",)), [HERE]),
    ],
    ids=["queues", "job types", "both"],
)
def test_a_narrowed_caller_reaches_only_what_it_is_narrowed_to(caller: Caller, reached: list[Lane]) -> None:
    lanes = [
        Lane(space, queue, kind)
        for space in ("default", "other")
        for queue in ("mail", "fax")
        for kind in ("send", "read")
    ]
    assert caller.narrowed
    assert [lane for lane in lanes if caller.reaches(lane)] == sorted(reached, key=lanes.index)


def test_what_a_narrowed_caller_may_not_make_is_told_with_what_it_may() -> None:
    with pytest.raises(Forbidden, match="only the queues mail, post, not fax"):
        Caller(name="ann", queues=("mail", "post")).check_reach(Lane("default", "fax", "send"))
    with pytest.raises(Forbidden, match="only the job types send, not read"):
        Caller(name="ann", job_types=("send",)).check_reach(Lane("default", "fax", "read"))
    Caller(name="ann", queues=("mail",), job_types=("send",)).check_reach(HERE)


@pytest.mark.parametrize("caller", [Caller(name="ann", queues=("mail",)), Caller(name="ann", job_types=("send",))])
def test_a_narrowed_caller_gets_nothing_that_concerns_the_whole_namespace(caller: Caller) -> None:
    with pytest.raises(Forbidden, match="the audit log concerns the whole namespace"):
        caller.check_whole("the audit log")
