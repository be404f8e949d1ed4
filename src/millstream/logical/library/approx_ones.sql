-- The number of ones among the last n bits, approximately (Datar, Gionis, Indyk, Motwani). A bucket has a power of two of
-- ones and the number of the latest; of three buckets of one size the two oldest are merged, one size a tuple each.
CREATE AGGREGATE approx_ones(bit INT, n INT) : INT
{ TABLE clock(t INT, oldest INT, ones INT);
  TABLE buckets(size INT, latest INT);
  TABLE sizes(size INT, buckets INT);
  TABLE merged(size INT, first INT, second INT);
  INITIALIZE: {
    INSERT INTO clock VALUES (1, 1, 0);
    INSERT INTO sizes VALUES (1, 0);
    INSERT INTO buckets VALUES (1, 1) WHERE bit = 1;
    UPDATE sizes SET buckets = 1 WHERE bit = 1;
    UPDATE clock SET ones = 1 WHERE bit = 1;
    INSERT INTO RETURN SELECT ones FROM clock; }
  ITERATE: {
    UPDATE clock SET t = t + 1, oldest = COALESCE((SELECT MIN(latest) FROM buckets), t + 1);
    DELETE FROM buckets WHERE (SELECT oldest FROM clock) <= (SELECT t FROM clock) - n
      AND latest <= (SELECT t FROM clock) - n;
    UPDATE sizes SET buckets = (SELECT COUNT(*) FROM buckets b WHERE b.size = sizes.size)
      WHERE (SELECT oldest FROM clock) <= (SELECT t FROM clock) - n;
    UPDATE clock SET ones = COALESCE((SELECT SUM(b.size) FROM buckets b), 0) WHERE oldest <= t - n;
    INSERT INTO buckets SELECT 1, t FROM clock WHERE bit = 1;
    UPDATE sizes SET buckets = buckets + 1 WHERE size = 1 AND bit = 1;
    UPDATE clock SET ones = ones + 1 WHERE bit = 1;
    INSERT INTO merged SELECT size, (SELECT MIN(b.latest) FROM buckets b WHERE b.size = sizes.size), 0 FROM sizes
      WHERE buckets > 2;
    UPDATE merged SET second =
      COALESCE((SELECT MIN(b.latest) FROM buckets b WHERE b.size = merged.size AND b.latest > merged.first), 0);
    DELETE FROM buckets WHERE EXISTS (SELECT 1 FROM merged m WHERE m.size = buckets.size AND m.second >= buckets.latest);
    INSERT INTO buckets SELECT 2 * size, second FROM merged;
    INSERT INTO sizes SELECT 2 * size, 0 FROM merged
      WHERE NOT EXISTS (SELECT 1 FROM sizes s WHERE s.size = 2 * merged.size);
    UPDATE sizes SET buckets = buckets - 2 WHERE size IN (SELECT size FROM merged);
    UPDATE sizes SET buckets = buckets + 1 WHERE size IN (SELECT 2 * size FROM merged);
    DELETE FROM merged;
    INSERT INTO RETURN SELECT ones
        - CAST(FLOOR(COALESCE((SELECT size FROM buckets ORDER BY latest LIMIT 1), 0) / 2) AS BIGINT) FROM clock; } }
IGNORE NULLS
