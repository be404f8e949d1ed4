-- The value that a share p of the values do not exceed, off by 2 per cent of it at most: a sketch of counters whose bounds
-- grow by 4 per cent (DDSketch; Masson, Rim, Lee). A counter has the numbers of values in it and below it. Values between
-- -1e-9 and 1e-9 count as zero.
CREATE AGGREGATE approx_quantile(x DOUBLE, p DOUBLE) : DOUBLE
{ TABLE this(key INT);
  TABLE counters(key INT, n INT, below INT);
  TABLE total(n INT);
  INITIALIZE: {
    INSERT INTO this VALUES (CASE WHEN ABS(x) < 1e-9 THEN 0
      ELSE CAST(SIGN(x) AS BIGINT) * (10000 + CAST(CEIL(LN(ABS(x)) / LN(1.04)) AS BIGINT)) END);
    INSERT INTO counters SELECT key, 1, 0 FROM this;
    INSERT INTO total VALUES (1);
    INSERT INTO RETURN SELECT SIGN(key) * 2 * POWER(1.04, ABS(key) - 10000) / 2.04 FROM this; }
  ITERATE: {
    UPDATE this SET key = CASE WHEN ABS(x) < 1e-9 THEN 0
      ELSE CAST(SIGN(x) AS BIGINT) * (10000 + CAST(CEIL(LN(ABS(x)) / LN(1.04)) AS BIGINT)) END;
    INSERT INTO counters SELECT key, 0, COALESCE((SELECT SUM(c.n) FROM counters c WHERE c.key < this.key), 0) FROM this
      WHERE NOT EXISTS (SELECT 1 FROM counters c WHERE c.key = this.key);
    UPDATE counters SET n = n + 1 WHERE key = (SELECT t.key FROM this t);
    UPDATE counters SET below = below + 1 WHERE key > (SELECT t.key FROM this t);
    UPDATE total SET n = n + 1;
    INSERT INTO RETURN SELECT SIGN(MIN(c.key)) * 2 * POWER(1.04, ABS(MIN(c.key)) - 10000) / 2.04 FROM counters c
      WHERE c.below + c.n >= p * (SELECT n FROM total); } }
IGNORE NULLS;

CREATE WINDOW AGGREGATE approx_quantile(x DOUBLE, p DOUBLE) : DOUBLE
{ TABLE this(key INT);
  TABLE counters(key INT, n INT, below INT);
  TABLE total(n INT);
  TABLE inwindow(wx DOUBLE, wp DOUBLE);
  INITIALIZE: {
    INSERT INTO this VALUES (CASE WHEN ABS(x) < 1e-9 THEN 0
      ELSE CAST(SIGN(x) AS BIGINT) * (10000 + CAST(CEIL(LN(ABS(x)) / LN(1.04)) AS BIGINT)) END);
    INSERT INTO counters SELECT key, 1, 0 FROM this;
    INSERT INTO total VALUES (1);
    INSERT INTO RETURN SELECT SIGN(key) * 2 * POWER(1.04, ABS(key) - 10000) / 2.04 FROM this; }
  ITERATE: {
    UPDATE this SET key = CASE WHEN ABS(x) < 1e-9 THEN 0
      ELSE CAST(SIGN(x) AS BIGINT) * (10000 + CAST(CEIL(LN(ABS(x)) / LN(1.04)) AS BIGINT)) END;
    INSERT INTO counters SELECT key, 0, COALESCE((SELECT SUM(c.n) FROM counters c WHERE c.key < this.key), 0) FROM this
      WHERE NOT EXISTS (SELECT 1 FROM counters c WHERE c.key = this.key);
    UPDATE counters SET n = n + 1 WHERE key = (SELECT t.key FROM this t);
    UPDATE counters SET below = below + 1 WHERE key > (SELECT t.key FROM this t);
    UPDATE total SET n = n + 1;
    INSERT INTO RETURN SELECT SIGN(MIN(c.key)) * 2 * POWER(1.04, ABS(MIN(c.key)) - 10000) / 2.04 FROM counters c
      WHERE c.below + c.n >= p * (SELECT n FROM total); }
  EXPIRE: {
    UPDATE this SET key = CASE WHEN ABS(x) < 1e-9 THEN 0
      ELSE CAST(SIGN(x) AS BIGINT) * (10000 + CAST(CEIL(LN(ABS(x)) / LN(1.04)) AS BIGINT)) END;
    UPDATE counters SET n = n - 1 WHERE key = (SELECT t.key FROM this t);
    DELETE FROM counters WHERE key = (SELECT t.key FROM this t) AND n = 0;
    UPDATE counters SET below = below - 1 WHERE key > (SELECT t.key FROM this t);
    UPDATE total SET n = n - 1;
    INSERT INTO RETURN SELECT SIGN(MIN(c.key)) * 2 * POWER(1.04, ABS(MIN(c.key)) - 10000) / 2.04 FROM counters c
      WHERE c.below + c.n >= p * (SELECT n FROM total)
      AND EXISTS (SELECT 1 FROM counters); } }
IGNORE NULLS
