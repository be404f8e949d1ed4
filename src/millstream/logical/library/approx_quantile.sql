-- The value that a share p of the values do not exceed, off by 2 per cent of it at most: a sketch of counters whose bounds
-- grow by 4 per cent (DDSketch; Masson, Rim, Lee). One counter has the value of that rank; the number of values below it
-- is kept too. A tuple changes both by one at most, so that the next counter or the one before is the furthest that it
-- can move; another p searches all counters. Values between -1e-9 and 1e-9 count as zero, NaN as the greatest one.
CREATE AGGREGATE approx_quantile(x DOUBLE, p DOUBLE) : DOUBLE
{ TABLE this(key INT, total INT, share DOUBLE, target DOUBLE);
  TABLE counters(key INT, n INT);
  TABLE place(key INT, n INT, below INT, counter INT, value DOUBLE);
  INITIALIZE: {
    INSERT INTO this VALUES (CASE WHEN ABS(x) < 1e-9 THEN 0 ELSE COALESCE(
      CAST(SIGN(x) AS BIGINT) * (10000 + COALESCE(CAST(CEIL(LN(ABS(x)) / LN(1.04)) AS BIGINT), 20000)), 30000) END, 1, p, p);
    INSERT INTO counters SELECT key, 1 FROM this;
    INSERT INTO place SELECT key, 1, 0, key, SIGN(key) * 2 * POWER(1.04, ABS(key) - 10000) / 2.04 FROM this;
    INSERT INTO RETURN SELECT value FROM place; }
  ITERATE: {
    UPDATE this SET key = CASE WHEN ABS(x) < 1e-9 THEN 0 ELSE COALESCE(
      CAST(SIGN(x) AS BIGINT) * (10000 + COALESCE(CAST(CEIL(LN(ABS(x)) / LN(1.04)) AS BIGINT), 20000)), 30000) END, total = total + 1;
    UPDATE this SET target = p * total;
    INSERT INTO counters SELECT key, 0 FROM this WHERE NOT EXISTS (SELECT 1 FROM counters c WHERE c.key = this.key);
    UPDATE counters SET n = n + 1 WHERE key = (SELECT t.key FROM this t);
    UPDATE place SET below = below + 1 WHERE key > (SELECT t.key FROM this t);
    UPDATE place SET n = n + 1 WHERE key = (SELECT t.key FROM this t);
    UPDATE place SET key = COALESCE((SELECT MIN(c.key) FROM counters c
        WHERE (SELECT SUM(d.n) FROM counters d WHERE d.key <= c.key) >= (SELECT target FROM this)), key)
      WHERE (SELECT share FROM this) <> p;
    UPDATE place SET n = COALESCE((SELECT c.n FROM counters c WHERE c.key = place.key), 0),
        below = COALESCE((SELECT SUM(c.n) FROM counters c WHERE c.key < place.key), 0)
      WHERE (SELECT share FROM this) <> p;
    UPDATE this SET share = p;
    UPDATE place SET below = below + n,
        n = COALESCE((SELECT c.n FROM counters c
          WHERE c.key = (SELECT MIN(d.key) FROM counters d WHERE d.key > place.key)), 0),
        key = COALESCE((SELECT MIN(d.key) FROM counters d WHERE d.key > place.key), 0)
      WHERE (n = 0 OR below + n < (SELECT target FROM this)) AND below + n < (SELECT total FROM this);
    UPDATE place SET below = below - COALESCE((SELECT c.n FROM counters c
          WHERE c.key = (SELECT MAX(d.key) FROM counters d WHERE d.key < place.key)), 0),
        n = COALESCE((SELECT c.n FROM counters c
          WHERE c.key = (SELECT MAX(d.key) FROM counters d WHERE d.key < place.key)), 0),
        key = COALESCE((SELECT MAX(d.key) FROM counters d WHERE d.key < place.key), 0)
      WHERE below > 0 AND below >= (SELECT target FROM this);
    UPDATE place SET counter = key, value = SIGN(key) * 2 * POWER(1.04, ABS(key) - 10000) / 2.04 WHERE counter <> key;
    INSERT INTO RETURN SELECT CASE WHEN n > 0 AND below + n >= target THEN value END FROM place, this; } }
IGNORE NULLS;

CREATE WINDOW AGGREGATE approx_quantile(x DOUBLE, p DOUBLE) : DOUBLE
{ TABLE this(key INT, total INT, share DOUBLE, target DOUBLE);
  TABLE counters(key INT, n INT);
  TABLE place(key INT, n INT, below INT, counter INT, value DOUBLE);
  TABLE inwindow(wx DOUBLE, wp DOUBLE);
  INITIALIZE: {
    INSERT INTO this VALUES (CASE WHEN ABS(x) < 1e-9 THEN 0 ELSE COALESCE(
      CAST(SIGN(x) AS BIGINT) * (10000 + COALESCE(CAST(CEIL(LN(ABS(x)) / LN(1.04)) AS BIGINT), 20000)), 30000) END, 1, p, p);
    INSERT INTO counters SELECT key, 1 FROM this;
    INSERT INTO place SELECT key, 1, 0, key, SIGN(key) * 2 * POWER(1.04, ABS(key) - 10000) / 2.04 FROM this;
    INSERT INTO RETURN SELECT value FROM place; }
  ITERATE: {
    UPDATE this SET key = CASE WHEN ABS(x) < 1e-9 THEN 0 ELSE COALESCE(
      CAST(SIGN(x) AS BIGINT) * (10000 + COALESCE(CAST(CEIL(LN(ABS(x)) / LN(1.04)) AS BIGINT), 20000)), 30000) END, total = total + 1;
    UPDATE this SET target = p * total;
    INSERT INTO counters SELECT key, 0 FROM this WHERE NOT EXISTS (SELECT 1 FROM counters c WHERE c.key = this.key);
    UPDATE counters SET n = n + 1 WHERE key = (SELECT t.key FROM this t);
    UPDATE place SET below = below + 1 WHERE key > (SELECT t.key FROM this t);
    UPDATE place SET n = n + 1 WHERE key = (SELECT t.key FROM this t);
    UPDATE place SET key = COALESCE((SELECT MIN(c.key) FROM counters c
        WHERE (SELECT SUM(d.n) FROM counters d WHERE d.key <= c.key) >= (SELECT target FROM this)), key)
      WHERE (SELECT share FROM this) <> p;
    UPDATE place SET n = COALESCE((SELECT c.n FROM counters c WHERE c.key = place.key), 0),
        below = COALESCE((SELECT SUM(c.n) FROM counters c WHERE c.key < place.key), 0)
      WHERE (SELECT share FROM this) <> p;
    UPDATE this SET share = p;
    UPDATE place SET below = below + n,
        n = COALESCE((SELECT c.n FROM counters c
          WHERE c.key = (SELECT MIN(d.key) FROM counters d WHERE d.key > place.key)), 0),
        key = COALESCE((SELECT MIN(d.key) FROM counters d WHERE d.key > place.key), 0)
      WHERE (n = 0 OR below + n < (SELECT target FROM this)) AND below + n < (SELECT total FROM this);
    UPDATE place SET below = below - COALESCE((SELECT c.n FROM counters c
          WHERE c.key = (SELECT MAX(d.key) FROM counters d WHERE d.key < place.key)), 0),
        n = COALESCE((SELECT c.n FROM counters c
          WHERE c.key = (SELECT MAX(d.key) FROM counters d WHERE d.key < place.key)), 0),
        key = COALESCE((SELECT MAX(d.key) FROM counters d WHERE d.key < place.key), 0)
      WHERE below > 0 AND below >= (SELECT target FROM this);
    UPDATE place SET counter = key, value = SIGN(key) * 2 * POWER(1.04, ABS(key) - 10000) / 2.04 WHERE counter <> key;
    INSERT INTO RETURN SELECT CASE WHEN n > 0 AND below + n >= target THEN value END FROM place, this; }
  EXPIRE: {
    UPDATE this SET key = CASE WHEN ABS(x) < 1e-9 THEN 0 ELSE COALESCE(
      CAST(SIGN(x) AS BIGINT) * (10000 + COALESCE(CAST(CEIL(LN(ABS(x)) / LN(1.04)) AS BIGINT), 20000)), 30000) END, total = total - 1;
    UPDATE this SET target = share * total;
    UPDATE counters SET n = n - 1 WHERE key = (SELECT t.key FROM this t);
    DELETE FROM counters WHERE key = (SELECT t.key FROM this t) AND n = 0;
    UPDATE place SET below = below - 1 WHERE key > (SELECT t.key FROM this t);
    UPDATE place SET n = n - 1 WHERE key = (SELECT t.key FROM this t);
    UPDATE place SET below = below + n,
        n = COALESCE((SELECT c.n FROM counters c
          WHERE c.key = (SELECT MIN(d.key) FROM counters d WHERE d.key > place.key)), 0),
        key = COALESCE((SELECT MIN(d.key) FROM counters d WHERE d.key > place.key), 0)
      WHERE (n = 0 OR below + n < (SELECT target FROM this)) AND below + n < (SELECT total FROM this);
    UPDATE place SET below = below - COALESCE((SELECT c.n FROM counters c
          WHERE c.key = (SELECT MAX(d.key) FROM counters d WHERE d.key < place.key)), 0),
        n = COALESCE((SELECT c.n FROM counters c
          WHERE c.key = (SELECT MAX(d.key) FROM counters d WHERE d.key < place.key)), 0),
        key = COALESCE((SELECT MAX(d.key) FROM counters d WHERE d.key < place.key), 0)
      WHERE below > 0 AND below >= (SELECT target FROM this);
    UPDATE place SET counter = key, value = SIGN(key) * 2 * POWER(1.04, ABS(key) - 10000) / 2.04 WHERE counter <> key;
    INSERT INTO RETURN SELECT CASE WHEN n > 0 AND below + n >= target THEN value END FROM place, this; } }
IGNORE NULLS
