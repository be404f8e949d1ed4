-- How often the item occurs in the window, never too low: the least of four counters that share hash values with it.
CREATE WINDOW AGGREGATE approx_frequency(item INT) : INT
{ TABLE hashes(first INT, factor INT, shift INT, place INT);
  TABLE counters(place INT, n INT);
  TABLE inwindow(w INT);
  INITIALIZE: {
    INSERT INTO hashes VALUES (0, 31, 7, 0), (1021, 1009, 13, 0), (2042, 7919, 101, 0), (3063, 40503, 977, 0);
    INSERT INTO counters SELECT first + (item % 1000003 * factor + shift) % 1021, 1 FROM hashes;
    INSERT INTO RETURN VALUES (1); }
  ITERATE: {
    UPDATE hashes SET place = first + (item % 1000003 * factor + shift) % 1021;
    UPDATE counters SET n = n + 1 WHERE place IN (SELECT place FROM hashes);
    INSERT INTO counters SELECT place, 1 FROM hashes WHERE NOT EXISTS
      (SELECT 1 FROM counters c WHERE c.place = hashes.place);
    INSERT INTO RETURN SELECT MIN(n) FROM counters WHERE place IN (SELECT place FROM hashes); }
  EXPIRE: {
    UPDATE hashes SET place = first + (item % 1000003 * factor + shift) % 1021;
    UPDATE counters SET n = n - 1 WHERE place IN (SELECT place FROM hashes);
    DELETE FROM counters WHERE n = 0 AND place IN (SELECT place FROM hashes); } }
IGNORE NULLS
