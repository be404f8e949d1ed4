-- The number of ones among the last n bits, approximately (Datar, Gionis, Indyk, Motwani). A bucket has a power of two of
-- ones and the number of the latest; of three buckets of one size the two oldest are merged, one size a tuple each. A
-- level has the latest ones of the buckets of one size, those of the oldest bucket first.
CREATE AGGREGATE approx_ones(bit INT, n INT) : INT
{ TABLE clock(t INT, ones INT, top INT, oldest INT, three INT);
  TABLE levels(size INT, buckets INT, first INT, second INT, third INT);
  TABLE merged(size INT, twice INT, latest INT);
  INITIALIZE: {
    INSERT INTO clock VALUES (1, 0, 0, 1, 0);
    INSERT INTO levels VALUES (1, 0, 0, 0, 0);
    UPDATE levels SET buckets = 1, first = 1 WHERE bit = 1;
    UPDATE clock SET ones = 1, top = 1 WHERE bit = 1;
    INSERT INTO RETURN SELECT ones FROM clock; }
  ITERATE: {
    UPDATE clock SET t = t + 1;
    UPDATE levels SET buckets = buckets - 1, first = second, second = third
      WHERE (SELECT t - oldest FROM clock) >= n AND buckets > 0 AND (SELECT t FROM clock) - first >= n;
    UPDATE levels SET buckets = buckets - 1, first = second, second = third
      WHERE (SELECT t - oldest FROM clock) >= n AND buckets > 0 AND (SELECT t FROM clock) - first >= n;
    UPDATE levels SET buckets = buckets - 1, first = second
      WHERE (SELECT t - oldest FROM clock) >= n AND buckets > 0 AND (SELECT t FROM clock) - first >= n;
    UPDATE clock SET ones = COALESCE((SELECT SUM(size * buckets) FROM levels), 0),
        top = COALESCE((SELECT MAX(size) FROM levels WHERE buckets > 0), 0),
        three = (SELECT COUNT(*) FROM levels WHERE buckets > 2)
      WHERE t - oldest >= n;
    UPDATE clock SET oldest = COALESCE((SELECT l.first FROM levels l WHERE l.size = clock.top), t)
      WHERE t - oldest >= n;
    UPDATE levels SET third = (SELECT t FROM clock) WHERE size = 1 AND bit = 1;
    UPDATE levels SET buckets = buckets + 1, first = CASE WHEN buckets = 0 THEN third ELSE first END,
        second = CASE WHEN buckets = 1 THEN third ELSE second END
      WHERE size = 1 AND bit = 1;
    UPDATE clock SET ones = ones + 1, three = three + (SELECT COUNT(*) FROM levels WHERE size = 1 AND buckets = 3)
      WHERE bit = 1;
    UPDATE clock SET top = 1, oldest = t WHERE bit = 1 AND top = 0;
    INSERT INTO merged SELECT size, 2 * size, second FROM levels WHERE (SELECT three FROM clock) > 0 AND buckets > 2;
    UPDATE levels SET buckets = 1, first = third WHERE size IN (SELECT size FROM merged);
    INSERT INTO levels SELECT twice, 0, 0, 0, 0 FROM merged
      WHERE NOT EXISTS (SELECT 1 FROM levels l WHERE l.size = merged.twice);
    UPDATE levels SET third = COALESCE((SELECT m.latest FROM merged m WHERE m.twice = levels.size), 0)
      WHERE size IN (SELECT twice FROM merged);
    UPDATE levels SET buckets = buckets + 1, first = CASE WHEN buckets = 0 THEN third ELSE first END,
        second = CASE WHEN buckets = 1 THEN third ELSE second END
      WHERE size IN (SELECT twice FROM merged);
    UPDATE clock SET top = GREATEST(top, COALESCE((SELECT MAX(twice) FROM merged), 0)),
        three = (SELECT COUNT(*) FROM levels WHERE buckets > 2) WHERE three > 0;
    UPDATE clock SET oldest = COALESCE((SELECT l.first FROM levels l WHERE l.size = clock.top), t)
      WHERE EXISTS (SELECT 1 FROM merged);
    DELETE FROM merged;
    INSERT INTO RETURN SELECT ones - CAST(FLOOR(top / 2) AS BIGINT) FROM clock; } }
IGNORE NULLS
