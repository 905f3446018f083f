from tests.processes import programs
from tests.trouble.clock_shim import clock_shim, shim_library

__all__ = ["clock_shim", "programs", "shim_library"]
