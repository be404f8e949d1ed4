-- The value that a share p of the values do not exceed, off by 2 per cent of it at most: a sketch of counters whose bounds
-- grow by 4 per cent (DDSketch; Masson, Rim, Lee). A block of 16 counters has the numbers of values in it and below it; a
-- counter those in it and below it in its block. Values between -1e-9 and 1e-9 count as zero, NaN as
-- the greatest one.
CREATE AGGREGATE approx_quantile(x DOUBLE, p DOUBLE) : DOUBLE
{ TABLE this(key INT, block INT);
  TABLE counters(key INT, block INT, n INT, below INT);
  TABLE blocks(block INT, n INT, below INT);
  TABLE total(n INT);
  INITIALIZE: {
    INSERT INTO this VALUES (CASE WHEN ABS(x) < 1e-9 THEN 0 ELSE COALESCE(
      CAST(SIGN(x) AS BIGINT) * (10000 + COALESCE(CAST(CEIL(LN(ABS(x)) / LN(1.04)) AS BIGINT), 20000)), 30000) END, 0);
    UPDATE this SET block = key - (key % 16 + 16) % 16;
    INSERT INTO counters SELECT key, block, 1, 0 FROM this;
    INSERT INTO blocks SELECT block, 1, 0 FROM this;
    INSERT INTO total VALUES (1);
    INSERT INTO RETURN SELECT SIGN(key) * 2 * POWER(1.04, ABS(key) - 10000) / 2.04 FROM this; }
  ITERATE: {
    UPDATE this SET key = CASE WHEN ABS(x) < 1e-9 THEN 0 ELSE COALESCE(
      CAST(SIGN(x) AS BIGINT) * (10000 + COALESCE(CAST(CEIL(LN(ABS(x)) / LN(1.04)) AS BIGINT), 20000)), 30000) END;
    UPDATE this SET block = key - (key % 16 + 16) % 16;
    INSERT INTO blocks SELECT block, 0, COALESCE((SELECT SUM(b.n) FROM blocks b WHERE b.block < this.block), 0) FROM this
      WHERE NOT EXISTS (SELECT 1 FROM blocks b WHERE b.block = this.block);
    INSERT INTO counters SELECT key, block, 0, COALESCE((SELECT SUM(c.n) FROM counters c
        WHERE c.block = this.block AND c.key < this.key), 0) FROM this
      WHERE NOT EXISTS (SELECT 1 FROM counters c WHERE c.key = this.key);
    UPDATE counters SET n = n + 1 WHERE key = (SELECT t.key FROM this t);
    UPDATE counters SET below = below + 1 WHERE block = (SELECT t.block FROM this t) AND key > (SELECT t.key FROM this t);
    UPDATE blocks SET n = n + 1 WHERE block = (SELECT t.block FROM this t);
    UPDATE blocks SET below = below + 1 WHERE block > (SELECT t.block FROM this t);
    UPDATE total SET n = n + 1;
    INSERT INTO RETURN SELECT SIGN(MIN(c.key)) * 2 * POWER(1.04, ABS(MIN(c.key)) - 10000) / 2.04
      FROM blocks b, counters c
      WHERE b.block = (SELECT MIN(f.block) FROM blocks f WHERE f.below + f.n >= p * (SELECT n FROM total))
        AND c.block = b.block AND c.below + c.n >= p * (SELECT n FROM total) - b.below; } }
IGNORE NULLS;

CREATE WINDOW AGGREGATE approx_quantile(x DOUBLE, p DOUBLE) : DOUBLE
{ TABLE this(key INT, block INT);
  TABLE counters(key INT, block INT, n INT, below INT);
  TABLE blocks(block INT, n INT, below INT);
  TABLE total(n INT);
  TABLE inwindow(wx DOUBLE, wp DOUBLE);
  INITIALIZE: {
    INSERT INTO this VALUES (CASE WHEN ABS(x) < 1e-9 THEN 0 ELSE COALESCE(
      CAST(SIGN(x) AS BIGINT) * (10000 + COALESCE(CAST(CEIL(LN(ABS(x)) / LN(1.04)) AS BIGINT), 20000)), 30000) END, 0);
    UPDATE this SET block = key - (key % 16 + 16) % 16;
    INSERT INTO counters SELECT key, block, 1, 0 FROM this;
    INSERT INTO blocks SELECT block, 1, 0 FROM this;
    INSERT INTO total VALUES (1);
    INSERT INTO RETURN SELECT SIGN(key) * 2 * POWER(1.04, ABS(key) - 10000) / 2.04 FROM this; }
  ITERATE: {
    UPDATE this SET key = CASE WHEN ABS(x) < 1e-9 THEN 0 ELSE COALESCE(
      CAST(SIGN(x) AS BIGINT) * (10000 + COALESCE(CAST(CEIL(LN(ABS(x)) / LN(1.04)) AS BIGINT), 20000)), 30000) END;
    UPDATE this SET block = key - (key % 16 + 16) % 16;
    INSERT INTO blocks SELECT block, 0, COALESCE((SELECT SUM(b.n) FROM blocks b WHERE b.block < this.block), 0) FROM this
      WHERE NOT EXISTS (SELECT 1 FROM blocks b WHERE b.block = this.block);
    INSERT INTO counters SELECT key, block, 0, COALESCE((SELECT SUM(c.n) FROM counters c
        WHERE c.block = this.block AND c.key < this.key), 0) FROM this
      WHERE NOT EXISTS (SELECT 1 FROM counters c WHERE c.key = this.key);
    UPDATE counters SET n = n + 1 WHERE key = (SELECT t.key FROM this t);
    UPDATE counters SET below = below + 1 WHERE block = (SELECT t.block FROM this t) AND key > (SELECT t.key FROM this t);
    UPDATE blocks SET n = n + 1 WHERE block = (SELECT t.block FROM this t);
    UPDATE blocks SET below = below + 1 WHERE block > (SELECT t.block FROM this t);
    UPDATE total SET n = n + 1;
    INSERT INTO RETURN SELECT SIGN(MIN(c.key)) * 2 * POWER(1.04, ABS(MIN(c.key)) - 10000) / 2.04
      FROM blocks b, counters c
      WHERE b.block = (SELECT MIN(f.block) FROM blocks f WHERE f.below + f.n >= p * (SELECT n FROM total))
        AND c.block = b.block AND c.below + c.n >= p * (SELECT n FROM total) - b.below; }
  EXPIRE: {
    UPDATE this SET key = CASE WHEN ABS(x) < 1e-9 THEN 0 ELSE COALESCE(
      CAST(SIGN(x) AS BIGINT) * (10000 + COALESCE(CAST(CEIL(LN(ABS(x)) / LN(1.04)) AS BIGINT), 20000)), 30000) END;
    UPDATE this SET block = key - (key % 16 + 16) % 16;
    UPDATE counters SET n = n - 1 WHERE key = (SELECT t.key FROM this t);
    DELETE FROM counters WHERE key = (SELECT t.key FROM this t) AND n = 0;
    UPDATE counters SET below = below - 1 WHERE block = (SELECT t.block FROM this t) AND key > (SELECT t.key FROM this t);
    UPDATE blocks SET n = n - 1 WHERE block = (SELECT t.block FROM this t);
    DELETE FROM blocks WHERE block = (SELECT t.block FROM this t) AND n = 0;
    UPDATE blocks SET below = below - 1 WHERE block > (SELECT t.block FROM this t);
    UPDATE total SET n = n - 1;
    INSERT INTO RETURN SELECT SIGN(MIN(c.key)) * 2 * POWER(1.04, ABS(MIN(c.key)) - 10000) / 2.04
      FROM blocks b, counters c
      WHERE b.block = (SELECT MIN(f.block) FROM blocks f WHERE f.below + f.n >= p * (SELECT n FROM total))
        AND c.block = b.block AND c.below + c.n >= p * (SELECT n FROM total) - b.below
        AND EXISTS (SELECT 1 FROM counters); } }
IGNORE NULLS
