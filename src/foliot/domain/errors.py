"""What can go wrong, as one tree. Each kind has the word and the HTTP status under which the outside knows it.

FoliotError
├── BadInput          400  the request itself is wrong; names the fields
│   ├── TooLarge      413
│   └── Unstorable    400  the store can not keep it (a character or number it has no room for)
├── NotAuthenticated  401
├── Forbidden         403
├── NotFound          404
├── Conflict          409  the object's state does not allow it
├── Gone              410  the worker's lease has ended: register anew
├── Stale             412  If-Match named an older version
├── TooMany           429  more than is allowed in a time; `retry_after` tells when to come again
├── Unavailable       503  ours to mend; `fate_unknown` when a commit's answer was lost
│   └── StoreFull     503  no room to write
├── Unreadable        500  it is kept sealed and does not open: its key is not here, or it was changed
└── SchemaMismatch    500  the database is of another version of Foliot; told at start
"""

from typing import ClassVar, Self

import msgspec


class FieldError(msgspec.Struct, frozen=True):
    """One field of the input and what would be right."""

    field: str
    message: str


class FoliotError(Exception):
    """Base of all errors that are shown to a caller; the message says what to do next."""

    code: ClassVar[str] = "internal"
    title: ClassVar[str] = "Something went wrong"
    status: ClassVar[int] = 500

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class BadInput(FoliotError):
    code = "bad-input"
    title = "The request is not valid"
    status = 400

    def __init__(self, detail: str, errors: tuple[FieldError, ...] = ()) -> None:
        super().__init__(detail)
        self.errors = errors

    @classmethod
    def at(cls, field: str, message: str) -> Self:
        return cls(f"{field}: {message}", (FieldError(field, message),))


class TooLarge(BadInput):
    code = "too-large"
    title = "The request is too large"
    status = 413


class Unstorable(BadInput):
    code = "unstorable"


class NotAuthenticated(FoliotError):
    code = "not-authenticated"
    title = "A valid key is needed"
    status = 401


class Forbidden(FoliotError):
    code = "forbidden"
    title = "Not allowed"
    status = 403


class NotFound(FoliotError):
    code = "not-found"
    title = "Not found"
    status = 404


class Conflict(FoliotError):
    code = "conflict"
    title = "The state does not allow it"
    status = 409


class Gone(FoliotError):
    code = "gone"
    title = "No longer there"
    status = 410


class Stale(FoliotError):
    code = "stale"
    title = "Changed in the meantime"
    status = 412


class TooMany(FoliotError):
    code = "too-many"
    title = "Too many requests"
    status = 429

    def __init__(self, detail: str, *, retry_after: int = 1) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class Unavailable(FoliotError):
    """The store did not answer, or not in time. With `fate_unknown` a write may or may not have been committed: the
    same call again finds out."""

    code = "unavailable"
    title = "Temporarily unavailable"
    status = 503

    def __init__(self, detail: str, *, fate_unknown: bool = False, retry_after: int = 1) -> None:
        super().__init__(detail)
        self.fate_unknown = fate_unknown
        self.retry_after = retry_after


class StoreFull(Unavailable):
    code = "store-full"
    title = "The store has no room to write"


class Unreadable(FoliotError):
    code = "unreadable"
    title = "What is kept can not be opened"


class SchemaMismatch(FoliotError):
    code = "schema-mismatch"
    title = "The database belongs to another version"
