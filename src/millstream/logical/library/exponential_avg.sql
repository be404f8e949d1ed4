-- An average in which the weight of a value falls by a factor of 1 - alpha with each later one.
CREATE AGGREGATE exponential_avg(x DOUBLE, alpha DOUBLE) : DOUBLE
{ TABLE state(mean DOUBLE);
  INITIALIZE: { INSERT INTO state VALUES (x); INSERT INTO RETURN VALUES (x); }
  ITERATE:    { UPDATE state SET mean = (1 - alpha) * mean + alpha * x; INSERT INTO RETURN SELECT mean FROM state; } }
IGNORE NULLS
