-- An auction floor: a table that two streams write, and a stream that reads it.
--   .venv/bin/millstream run examples/auction_floor.sql --local --seconds 20
-- The streams are generated. The last statement prints its rows when the run ends.

CREATE STREAM auctions (id BIGINT, item_name VARCHAR, seller BIGINT, category BIGINT, ts TIMESTAMP)
  ORDER BY ts WITH (connector = 'nexmark', stream = 'auction', rate = 10000, events = 200000);

CREATE STREAM bids (auction BIGINT, bidder BIGINT, price BIGINT, ts TIMESTAMP)
  ORDER BY ts WITH (connector = 'nexmark', stream = 'bid', rate = 10000, events = 200000);

CREATE TABLE floor (id BIGINT PRIMARY KEY, category BIGINT, bids BIGINT, highest BIGINT);

-- A new auction enters the floor; each bid changes its row.
CREATE QUERY opened AS
  INSERT INTO floor SELECT id, category, 0, NULL FROM auctions;
CREATE QUERY bid_on AS
  UPDATE floor SET bids = floor.bids + 1, highest = GREATEST(COALESCE(floor.highest, b.price), b.price)
  FROM bids b WHERE floor.id = b.auction;

-- Each auction that has a new highest bid, with what the table has by then.
CREATE QUERY leading AS
  SELECT b.ts, b.auction, b.bidder, b.price, f.bids FROM bids b JOIN floor f ON b.auction = f.id
  WHERE b.price = f.highest AND b.price > 50000000
  INTO console;

CREATE VIEW busy AS SELECT category, COUNT(*) AS auctions, SUM(bids) AS bids, MAX(highest) AS highest
  FROM floor GROUP BY category;

SELECT category, auctions, bids, highest FROM busy ORDER BY category;
