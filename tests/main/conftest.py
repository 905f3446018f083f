from tests.processes import programs

__all__ = ["programs"]
