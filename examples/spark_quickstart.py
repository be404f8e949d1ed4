"""A stream, a query, an answer, on Spark. Run it with `.venv/bin/python examples/spark_quickstart.py`."""

import millstream as ms

with ms.connect() as mill:
    mill.sql("CREATE STREAM bids (auction BIGINT, price DOUBLE) PUNCTUATED ON (auction #)")
    hot = mill.sql("SELECT auction, COUNT(*) AS bids, MAX(price) AS top FROM bids GROUP BY auction").start()
    mill.insert("bids", [(1, 10.0), (2, 20.0), (1, 15.0)])
    mill.punctuate("bids", "[1, *]")  # auction 1 is closed: no later bid has auction = 1
    print(hot.take().rows())  # [(1, 2, 15.0)], and its state is gone
    print(hot.progress().state_rows)  # 1: auction 2 is still open
