"""What a node does by itself: the duties, each an idempotent step that any node may take, woken by due times and hints.

`timekeeper` moves jobs at their instant, `duties` holds the slower ones (recover, expire, heartbeat, prune), `relay`
passes hints between nodes. Everything that runs has the same `start`, `started` and `stop`. A node that dies delays
nothing that another can do; no node is special.
"""
