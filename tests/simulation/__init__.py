"""A thousand jobs over ten workers under a clock that jumps from moment to moment: the services of a node over the
SQLite store, workers that take and report, and nothing random but what a seed made.

    scenario (queues, workers, jobs) ─▶ cluster (runs it) ─▶ watch (what must hold, seen from the workers' side)
                                            └─▶ picture (docs/explanation/simulation.svg)

`python -m tests.simulation` runs it and draws the picture anew.
"""
