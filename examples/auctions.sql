-- An auction site on Spark. Without a cluster:
--   .venv/bin/millstream run examples/auctions.sql --seconds 60
-- The streams are generated, 20,000 events a second in real time.

CREATE STREAM auctions (id BIGINT, item_name VARCHAR, seller BIGINT, category BIGINT, ts TIMESTAMP)
  ORDER BY ts PRIMARY KEY (id) ASCENDING (id)
  WITH (connector = 'nexmark', stream = 'auction', rate = 20000, punctuation = 'auction, time', speed = 1);

CREATE STREAM bids (auction BIGINT, bidder BIGINT, price BIGINT, ts TIMESTAMP)
  ORDER BY ts PUNCTUATED ON (auction #) PUNCTUATED ON (ts +)
  WITH (connector = 'nexmark', stream = 'bid', rate = 20000, punctuation = 'auction, time', speed = 1);

-- Bids with what they are for. No window: an auction is forgotten when it closes. Ids ascend, so a bid does not wait for
-- an auction whose id was passed over.
CREATE QUERY high_bids AS
  SELECT b.ts, b.auction, a.item_name, a.seller, b.bidder, b.price
  FROM bids b JOIN auctions a ON b.auction = a.id
  WHERE b.price > 10000000
  INTO parquet WITH (path = 'results/high_bids', overwrite = true);

-- Every two seconds, the bids of the last ten.
CREATE QUERY activity AS
  SELECT window_end, COUNT(*) AS bids, AVG(price) AS mean, MAX(price) AS highest
  FROM bids [RANGE 10 SECONDS SLIDE 2 SECONDS]
  INTO console;
