"""A worker as a process of its own: `python -m tests.worker.worker_program URL KEY QUEUE GRACE`."""

import sys

from foliot.worker import Worker, run_worker
from tests.worker.sample_handlers import HANDLERS

if __name__ == "__main__":
    url, key, queue, grace = sys.argv[1:]
    sys.exit(run_worker(Worker(url, key, HANDLERS, queues=[queue], name=queue, grace=float(grace), stop_grace=0.5)))
