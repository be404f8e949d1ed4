"""A stream, a query, an answer. Run it with `.venv/bin/python examples/quickstart.py`."""

from millstream.control.mill import LocalMill

mill = LocalMill()
mill.execute("""
    CREATE STREAM bids (auction BIGINT, price DOUBLE) PUNCTUATED ON (auction #);
    CREATE QUERY hot AS SELECT auction, COUNT(*) AS bids, MAX(price) AS top FROM bids GROUP BY auction;
""")
mill.insert("bids", [(1, 10.0), (2, 20.0), (1, 15.0)])
mill.punctuate("bids", "[1, *]")  # auction 1 is closed: no later bid has auction = 1
mill.batch()

print(mill.take_rows("hot"))
print("groups still held:", mill.state_rows("hot"))

mill.insert("bids", [(1, 99.0)])  # breaks the promise
mill.batch()
print("late:", mill.counts("bids")["late"])
