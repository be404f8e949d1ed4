-- The number of different items, approximately: linear counting (Whang, Vander-Zanden, Taylor). An item is hashed to one
-- of 65536 counters; the share of counters in use tells how many items there are. Good to one per cent up to 300000 items,
-- to three up to 500000; no result exceeds 726817.
CREATE AGGREGATE approx_distinct(item INT) : INT
{ TABLE hash(y INT, bucket INT, used INT);
  TABLE counters(bucket INT, n INT);
  INITIALIZE: {
    INSERT INTO hash VALUES ((item % 2147483647 + 2147483647) % 2147483647 * 1103515245 % 2147483647, 0, 1);
    UPDATE hash SET bucket = (y * y % 2147483647 + y * 40503 + 101) % 2147483647 % 65536;
    INSERT INTO counters SELECT bucket, 1 FROM hash;
    INSERT INTO RETURN VALUES (1); }
  ITERATE: {
    UPDATE hash SET y = (item % 2147483647 + 2147483647) % 2147483647 * 1103515245 % 2147483647;
    UPDATE hash SET bucket = (y * y % 2147483647 + y * 40503 + 101) % 2147483647 % 65536;
    UPDATE hash SET used = used + 1 WHERE NOT EXISTS (SELECT 1 FROM counters c WHERE c.bucket = hash.bucket);
    INSERT INTO counters SELECT bucket, 1 FROM hash
      WHERE NOT EXISTS (SELECT 1 FROM counters c WHERE c.bucket = hash.bucket);
    INSERT INTO RETURN SELECT CAST(ROUND(-65536 * LN(GREATEST(65536 - used, 1) / 65536)) AS BIGINT) FROM hash; } }
IGNORE NULLS;

CREATE WINDOW AGGREGATE approx_distinct(item INT) : INT
{ TABLE hash(y INT, bucket INT, used INT);
  TABLE counters(bucket INT, n INT);
  TABLE inwindow(w INT);
  INITIALIZE: {
    INSERT INTO hash VALUES ((item % 2147483647 + 2147483647) % 2147483647 * 1103515245 % 2147483647, 0, 1);
    UPDATE hash SET bucket = (y * y % 2147483647 + y * 40503 + 101) % 2147483647 % 65536;
    INSERT INTO counters SELECT bucket, 1 FROM hash;
    INSERT INTO RETURN VALUES (1); }
  ITERATE: {
    UPDATE hash SET y = (item % 2147483647 + 2147483647) % 2147483647 * 1103515245 % 2147483647;
    UPDATE hash SET bucket = (y * y % 2147483647 + y * 40503 + 101) % 2147483647 % 65536;
    UPDATE hash SET used = used + 1 WHERE NOT EXISTS (SELECT 1 FROM counters c WHERE c.bucket = hash.bucket);
    INSERT INTO counters SELECT bucket, 0 FROM hash
      WHERE NOT EXISTS (SELECT 1 FROM counters c WHERE c.bucket = hash.bucket);
    UPDATE counters SET n = n + 1 WHERE bucket = (SELECT h.bucket FROM hash h);
    INSERT INTO RETURN SELECT CAST(ROUND(-65536 * LN(GREATEST(65536 - used, 1) / 65536)) AS BIGINT) FROM hash; }
  EXPIRE: {
    UPDATE hash SET y = (item % 2147483647 + 2147483647) % 2147483647 * 1103515245 % 2147483647;
    UPDATE hash SET bucket = (y * y % 2147483647 + y * 40503 + 101) % 2147483647 % 65536;
    UPDATE counters SET n = n - 1 WHERE bucket = (SELECT h.bucket FROM hash h);
    DELETE FROM counters WHERE bucket = (SELECT h.bucket FROM hash h) AND n = 0;
    UPDATE hash SET used = used - 1 WHERE NOT EXISTS (SELECT 1 FROM counters c WHERE c.bucket = hash.bucket);
    INSERT INTO RETURN SELECT CAST(ROUND(-65536 * LN(GREATEST(65536 - used, 1) / 65536)) AS BIGINT) FROM hash WHERE used > 0; } }
IGNORE NULLS
