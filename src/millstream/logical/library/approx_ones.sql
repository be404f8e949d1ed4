-- The number of ones among the last n bits, approximately (Datar, Gionis, Indyk, Motwani). A bucket has a power of two of
-- ones and the number of the latest; of three buckets of one size the two oldest are merged, one size a tuple each.
CREATE AGGREGATE approx_ones(bit INT, n INT) : INT
{ TABLE clock(t INT);
  TABLE buckets(size INT, latest INT);
  TABLE oldest_of(size INT, latest INT);
  TABLE second_of(latest INT);
  INITIALIZE: {
    INSERT INTO clock VALUES (1);
    INSERT INTO buckets VALUES (1, 1) WHERE bit = 1;
    INSERT INTO RETURN SELECT COUNT(*) FROM buckets; }
  ITERATE: {
    UPDATE clock SET t = t + 1;
    DELETE FROM buckets WHERE latest <= (SELECT t FROM clock) - n;
    INSERT INTO buckets SELECT 1, t FROM clock WHERE bit = 1;
    INSERT INTO oldest_of SELECT size, MIN(latest) FROM buckets GROUP BY size HAVING COUNT(*) > 2;
    INSERT INTO second_of SELECT MIN(b.latest) FROM buckets b, oldest_of o
      WHERE b.size = o.size AND b.latest > o.latest GROUP BY b.size;
    DELETE FROM buckets WHERE EXISTS (SELECT 1 FROM oldest_of o WHERE o.latest = buckets.latest);
    UPDATE buckets SET size = 2 * size WHERE EXISTS (SELECT 1 FROM second_of s WHERE s.latest = buckets.latest);
    DELETE FROM oldest_of;
    DELETE FROM second_of;
    INSERT INTO RETURN SELECT COALESCE(SUM(size), 0)
        - CAST(FLOOR(COALESCE((SELECT size FROM buckets ORDER BY latest LIMIT 1), 0) / 2) AS BIGINT) FROM buckets; } }
IGNORE NULLS
