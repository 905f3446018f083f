"""Runs the simulation and draws its picture anew."""

import asyncio

from tests.simulation.cluster import Cluster
from tests.simulation.picture import FILE, draw


def main() -> None:
    cluster = Cluster()
    asyncio.run(cluster.run())
    FILE.write_text(draw(cluster.watch.starts), "utf-8")
    print(f"{FILE}: {len(cluster.watch.starts)} jobs")


if __name__ == "__main__":
    main()
