-- The average of all values so far.
CREATE AGGREGATE cumulative_avg(x DOUBLE) : DOUBLE
{ TABLE state(total DOUBLE, n INT);
  INITIALIZE: { INSERT INTO state VALUES (x, 1); INSERT INTO RETURN VALUES (x); }
  ITERATE:    { UPDATE state SET total = total + x, n = n + 1; INSERT INTO RETURN SELECT total / n FROM state; } }
IGNORE NULLS
