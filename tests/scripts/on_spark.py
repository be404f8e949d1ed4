"""Random scripts on Spark: `python -m tests.scripts.on_spark [COUNT] [SEED] [prods | feedback]`.

Each script is recorded in process, compared with the reference, written as a transcript and run on Spark, where one job
serves many of them. Two shards, random cuts. With `prods`, scripts of early answers, which restart the job; there is no
reference to compare with. With `feedback`, scripts that send much of it. Transcripts that fail are kept.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from random import Random

from millstream.control.spark.session import start_session
from millstream.testing.runner import Outcome, Variant
from millstream.testing.spark import run_paths_on_spark
from tests.scripts.feedback import random_feedback
from tests.scripts.prods import random_prods, with_answers
from tests.scripts.record import recorded
from tests.scripts.script import random_script


def main(count: int = 200, seed: int = 1, *, what: str = "") -> int:
    folder = Path(tempfile.mkdtemp(prefix="millstream-scripts-"))
    for number in range(seed, seed + count):
        if what == "prods":
            text = with_answers(random_prods(Random(number)))
        else:
            text, answers = recorded((random_feedback if what == "feedback" else random_script)(Random(number)))
            answers.check()
        (folder / f"{number}.transcript").write_text(text)
    done: list[Outcome] = []

    def report(outcome: Outcome) -> None:
        done.append(outcome)
        if not outcome.passed:
            print(f"FAILED {outcome.name}\n" + "\n".join(outcome.failures))
        elif len(done) % 20 == 0:
            print(f"{len(done)} of {count} scripts", flush=True)

    spark = start_session()
    try:
        run_paths_on_spark(spark, [folder], Variant(shards=2, cut=f"random:{seed}"), report)
    finally:
        spark.stop()
    failed = sum(not outcome.passed for outcome in done)
    print(f"{len(done) - failed} passed, {failed} failed")
    if not failed:
        shutil.rmtree(folder)
    return int(failed > 0)


if __name__ == "__main__":
    numbers = [int(each) for each in sys.argv[1:] if each.isdecimal()]
    sys.exit(main(*numbers, what=next((each for each in sys.argv[1:] if not each.isdecimal()), "")))
