"""The rules, pure: no I/O, no clock, no randomness of their own.

Everything here is a value or a function of values. Time comes in as whole microseconds since 1970 (`Micros`), numbers
that must differ come from `ids`, and whatever looks random (retry jitter) is a stable hash, so that every decision can
be repeated and tested. `states.transition` is the only maker of changes to a job; the store only carries them out.

Nothing here raises for what a user may do wrong later: expected outcomes are return values (`Change`, `Refusal`). What
is wrong in the input itself is an error of `errors`, which names the field and says what would be right.
"""
