"""What a program tells about itself while it runs: log lines, traces, metrics.

Everything here is off or next to free until somebody asks for it, knows nothing of jobs, stores and nodes beyond what
it is handed, and never makes a caller fail: what can not be told is left out.
"""
