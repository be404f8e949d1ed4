-- How often the item occurs in the window, never too low: the least of four counters that share hash values with it.
CREATE WINDOW AGGREGATE approx_frequency(item INT) : INT
{ TABLE hashes(h INT, factor INT, shift INT);
  TABLE places(place INT);
  TABLE counters(place INT, n INT);
  TABLE inwindow(w INT);
  INITIALIZE: {
    INSERT INTO hashes VALUES (0, 31, 7), (1, 1009, 13), (2, 7919, 101), (3, 40503, 977);
    INSERT INTO counters SELECT h * 1021 + (item % 1000003 * factor + shift) % 1021, 1 FROM hashes;
    INSERT INTO RETURN VALUES (1); }
  ITERATE: {
    DELETE FROM places;
    INSERT INTO places SELECT h * 1021 + (item % 1000003 * factor + shift) % 1021 FROM hashes;
    UPDATE counters SET n = n + 1 WHERE place IN (SELECT place FROM places);
    INSERT INTO counters SELECT place, 1 FROM places WHERE NOT EXISTS
      (SELECT 1 FROM counters c WHERE c.place = places.place);
    INSERT INTO RETURN SELECT MIN(n) FROM counters WHERE place IN (SELECT place FROM places); }
  EXPIRE: {
    DELETE FROM places;
    INSERT INTO places SELECT h * 1021 + (item % 1000003 * factor + shift) % 1021 FROM hashes;
    UPDATE counters SET n = n - 1 WHERE place IN (SELECT place FROM places);
    DELETE FROM counters WHERE n = 0 AND place IN (SELECT place FROM places); } }
IGNORE NULLS
