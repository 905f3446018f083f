"""What Foliot can do on this machine, beside what the machine can do at all: `python -m bench --help`.

    __main__ ─▶ measures, punctuality, queues, graphs
                   ├─▶ site (database, node, worker) ◀─HTTP─ load, a process of its own
                   │    └─ worker runs noop_app, which notes each start on the sheet
                   └─▶ bare (the least statements a job's life takes, straight on the driver)
    readings ─▶ report (marks, tables, histograms)

Each measure gets a fresh database and fresh processes, so that none sees what another left. Everything is durable:
commits reach the disk before they are answered. A figure from a shared machine is noisy; the share of the bare limit,
measured moments before on the same disk and cores, is what can be compared between runs.
"""
