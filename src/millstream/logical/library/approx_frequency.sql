-- How often the item occurs in the window, never too low: the least of the counters of four hash values. These are the
-- remainders by four primes: two items have all four in common only if they differ by a multiple of their product, 10^12.
-- The remainder of a negative item is negative; the places of the four hashes are far enough apart for both signs.
CREATE WINDOW AGGREGATE approx_frequency(item INT) : INT
{ TABLE hashes(first INT, prime INT, place INT);
  TABLE counters(place INT, n INT);
  TABLE inwindow(w INT);
  INITIALIZE: {
    INSERT INTO hashes VALUES (0, 1009, 0), (2048, 1013, 0), (4096, 1019, 0), (6144, 1021, 0);
    INSERT INTO counters SELECT first + item % prime, 1 FROM hashes;
    INSERT INTO RETURN VALUES (1); }
  ITERATE: {
    UPDATE hashes SET place = first + item % prime;
    UPDATE counters SET n = n + 1 WHERE place IN (SELECT place FROM hashes);
    INSERT INTO counters SELECT place, 1 FROM hashes WHERE NOT EXISTS
      (SELECT 1 FROM counters c WHERE c.place = hashes.place);
    INSERT INTO RETURN SELECT MIN(n) FROM counters WHERE place IN (SELECT place FROM hashes); }
  EXPIRE: {
    UPDATE hashes SET place = first + item % prime;
    UPDATE counters SET n = n - 1 WHERE place IN (SELECT place FROM hashes);
    DELETE FROM counters WHERE n = 0 AND place IN (SELECT place FROM hashes); } }
IGNORE NULLS
