-- The least value in the window; it keeps only the tuples that can still become the least.
CREATE ALGEBRAIC WINDOW AGGREGATE window_min(x DOUBLE) : DOUBLE
{ TABLE inwindow(w DOUBLE);
  INITIALIZE: { INSERT INTO RETURN VALUES (x); }
  ITERATE:    { DELETE FROM inwindow WHERE w > x; INSERT INTO RETURN VALUES (oldest()); }
  EXPIRE:     { INSERT INTO RETURN SELECT w FROM inwindow ORDER BY w LIMIT 1 OFFSET 1; } }
IGNORE NULLS
