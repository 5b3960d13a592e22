"""Work on several machines or processes: engines with workers, objects that live with them, and what is made of these.

`engine` states what is asked of an engine; `DaskEngine`, `ProcessEngine` and `RayEngine` implement it. A `Team` keeps
one object for each part of the data.
"""

from symsvm.distributed.dask_engine import DaskEngine
from symsvm.distributed.engine import Actor, ClusterError, Engine, Reply, WorkerLostError
from symsvm.distributed.process_engine import ProcessEngine
from symsvm.distributed.ray_engine import RayEngine
from symsvm.distributed.spread_data import Spread, spread
from symsvm.distributed.team import Part, Team

__all__ = [
    "Actor",
    "ClusterError",
    "DaskEngine",
    "Engine",
    "Part",
    "ProcessEngine",
    "RayEngine",
    "Reply",
    "Spread",
    "Team",
    "WorkerLostError",
    "spread",
]
