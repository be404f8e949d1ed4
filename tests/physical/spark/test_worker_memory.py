"""A Python worker of Spark holds no more after twenty tasks than after its first."""

import subprocess
import sys

TASKS = """
import gc, pickle
from pyspark.sql import Row
from millstream.physical.spark.entry import LazyStage

class Handle:
    def getMapState(self, *_):
        return None

class Garbage:
    def __init__(self):
        self.itself = self

row = Row(shard=-1, seq=0, kind=0, stream="q", head=b"", page=b"")
given = pickle.dumps(LazyStage("job", 0, 1))
for number in range(20):
    stage = pickle.loads(given)
    stage.init(Handle())
    garbage = [Garbage() for _ in range(100)]
    del garbage
    assert len(list(stage.handleInputRows((-1,), [row], None))) == 1
    stage.close()
    if number == 1:
        frozen = gc.get_freeze_count()
print(gc.get_freeze_count() - frozen, frozen > 1000)
"""


def test_what_a_task_leaves_is_collected() -> None:
    said = subprocess.run([sys.executable, "-c", TASKS], capture_output=True, text=True, check=True, timeout=60).stdout
    grown, frozen = said.split()
    assert int(grown) <= 0
    assert frozen == "True"
