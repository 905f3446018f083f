"""What a Python program uses: the app object with its job functions, the client, and what a handler is given.

`Foliot` holds the functions that are jobs and submits them; `AsyncClient` is every call of the API as a method; what a
job function sees and raises is in `context` and `errors`. Everything is written once, as coroutines. A blocking object
(`Client`, `Job`, a job function) runs them on an event loop on a thread of its own, and carries the awaitable ones as
`.aio`, under the same names.

Guaranteed: a submit that returns was stored; one repeated by us after a lost answer is stored once. What may fail
raises one tree of errors, `foliot.sdk.failures`, which says what to do next. This room knows HTTP and the wire's types,
never the store: the embedded node is found by name, in `foliot.main`.
"""
