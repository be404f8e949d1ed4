-- How often the item occurs in the window, never too low: the least of four counters that share hash values with it.
CREATE WINDOW AGGREGATE approx_frequency(item INT) : INT
{ TABLE hashes(h INT, factor INT, shift INT);
  TABLE counters(h INT, bucket INT, n INT);
  TABLE inwindow(w INT);
  INITIALIZE: {
    INSERT INTO hashes VALUES (1, 31, 7), (2, 1009, 13), (3, 7919, 101), (4, 40503, 977);
    INSERT INTO counters SELECT h, (item % 1000003 * factor + shift) % 1021, 1 FROM hashes;
    INSERT INTO RETURN VALUES (1); }
  ITERATE: {
    INSERT INTO counters SELECT h, (item % 1000003 * factor + shift) % 1021, 0 FROM hashes
      WHERE NOT EXISTS (SELECT 1 FROM counters c
        WHERE c.h = hashes.h AND c.bucket = (item % 1000003 * factor + shift) % 1021);
    UPDATE counters SET n = n + 1 WHERE bucket = (SELECT (item % 1000003 * factor + shift) % 1021 FROM hashes
      WHERE hashes.h = counters.h);
    INSERT INTO RETURN SELECT MIN(c.n) FROM hashes, counters c
      WHERE c.h = hashes.h AND c.bucket = (item % 1000003 * factor + shift) % 1021; }
  EXPIRE: {
    UPDATE counters SET n = n - 1 WHERE bucket = (SELECT (item % 1000003 * factor + shift) % 1021 FROM hashes
      WHERE hashes.h = counters.h);
    DELETE FROM counters WHERE n = 0; } }
IGNORE NULLS
