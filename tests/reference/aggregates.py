"""Aggregates of every shape, for tests."""

PROGRAMS = """
CREATE AGGREGATE avg(Next Real) : Real
{ TABLE state(tsum Real, cnt Int);
  INITIALIZE: { INSERT INTO state VALUES (Next, 1); }
  ITERATE:    { UPDATE state SET tsum=tsum+Next, cnt=cnt+1; }
  TERMINATE:  { INSERT INTO RETURN SELECT tsum/cnt FROM state; } } IGNORE NULLS

CREATE AGGREGATE total(Next Int) : Int
{ TABLE state(s Int);
  INITIALIZE: { INSERT INTO state VALUES (Next); }
  ITERATE:    { UPDATE state SET s = COALESCE(s, 0) + COALESCE(Next, 0); }
  TERMINATE:  { INSERT INTO RETURN SELECT s FROM state; } }

CREATE ALGEBRAIC WINDOW AGGREGATE total(Next Int) : Int
{ TABLE state(s Int); TABLE inwindow(w Int);
  INITIALIZE: { INSERT INTO state VALUES (COALESCE(Next, 0)); INSERT INTO RETURN SELECT s FROM state; }
  ITERATE:    { UPDATE state SET s = s + COALESCE(Next, 0); INSERT INTO RETURN SELECT s FROM state; }
  EXPIRE:     { UPDATE state SET s = s - COALESCE(oldest(), 0); INSERT INTO RETURN SELECT s FROM state; } }

CREATE WINDOW AGGREGATE myavg(Next Real) : Real
{ TABLE state(tsum Real, cnt Int); TABLE inwindow(wnext Real);
  INITIALIZE: { INSERT INTO state VALUES (COALESCE(Next, 0), 1); INSERT INTO RETURN VALUES (Next); }
  ITERATE:    { UPDATE state SET tsum=tsum+COALESCE(Next, 0), cnt=cnt+1;
                INSERT INTO RETURN SELECT tsum/cnt FROM state; }
  EXPIRE:     { UPDATE state SET cnt=cnt-1, tsum=tsum-COALESCE(oldest().wnext, 0);
                INSERT INTO RETURN SELECT cnt FROM state; } }

CREATE WINDOW AGGREGATE largest(Next Real) : Real
{ TABLE inwindow(wnext real);
  INITIALIZE: { INSERT INTO RETURN VALUES (Next); }
  ITERATE:    { DELETE FROM inwindow WHERE wnext < Next OR wnext IS NULL; INSERT INTO RETURN VALUES (oldest()); }
  EXPIRE:     { } }

CREATE WINDOW AGGREGATE greatest_known(Next Real) : Real
{ TABLE inwindow(wnext real);
  INITIALIZE: { INSERT INTO RETURN VALUES (Next); }
  ITERATE:    { DELETE FROM inwindow WHERE wnext < Next; INSERT INTO RETURN VALUES (oldest()); }
  EXPIRE:     { INSERT INTO RETURN SELECT wnext FROM inwindow ORDER BY wnext DESC LIMIT 1 OFFSET 1; } } IGNORE NULLS

CREATE WINDOW AGGREGATE spread(a INT, b REAL) : (low REAL, n INT)
{ TABLE inwindow(wa INT, wb REAL);
  INITIALIZE: ITERATE: {
    INSERT INTO RETURN SELECT MIN(i.wa + j.wb), COUNT(*) FROM inwindow i, inwindow j WHERE i.wa = j.wa; }
  EXPIRE: { INSERT INTO RETURN SELECT a, COUNT(DISTINCT wa) FROM inwindow
    WHERE wb IN (SELECT wb FROM inwindow) OR b > 1; } }

CREATE WINDOW AGGREGATE recent(Next INT) : INT
{ TABLE seen(x INT, n INT); TABLE inwindow(w INT);
  INITIALIZE: ITERATE: {
    INSERT INTO seen SELECT Next, 0 WHERE NOT EXISTS (SELECT * FROM seen WHERE x = Next);
    UPDATE seen SET n = n + (SELECT COUNT(*) FROM inwindow WHERE w = x) WHERE x = Next;
    INSERT INTO RETURN SELECT n FROM seen WHERE Next IS NOT NULL ORDER BY n DESC, x LIMIT 2; }
  EXPIRE: { DELETE FROM seen WHERE x = oldest() AND n > 3; } }

CREATE WINDOW AGGREGATE pruned(v INT, name VARCHAR) : VARCHAR
{ TABLE inwindow(wv INT, wname VARCHAR); TABLE pairs(a VARCHAR, b INT);
  INITIALIZE: ITERATE: {
    DELETE FROM inwindow WHERE wname = name AND wv <> v;
    DELETE FROM pairs;
    INSERT INTO pairs SELECT wname, SUM(wv) FROM inwindow GROUP BY wname HAVING COUNT(*) > 1;
    INSERT INTO RETURN SELECT p.a || ' ' || i.wname FROM inwindow i LEFT JOIN pairs p ON p.a = i.wname
      WHERE i.wv IS NOT NULL ORDER BY i.wv DESC, p.a LIMIT 3; } }

CREATE WINDOW AGGREGATE chosen(v INT, name VARCHAR) : (low INT, n INT)
{ TABLE marks(m INT, times INT); TABLE near(x INT); TABLE inwindow(wv INT, wname VARCHAR);
  INITIALIZE: ITERATE: {
    DELETE FROM near;
    INSERT INTO near VALUES (v), (v + 1), (NULL), (v);
    UPDATE marks SET times = times + 1 WHERE m IN (SELECT x FROM near) AND times < 5;
    INSERT INTO marks SELECT DISTINCT x, 0 FROM near WHERE NOT EXISTS (SELECT 1 FROM marks WHERE m = x);
    DELETE FROM marks WHERE times = 2 AND m IN (SELECT wv FROM inwindow WHERE wname = name);
    INSERT INTO RETURN SELECT m, (SELECT COUNT(*) FROM inwindow i WHERE i.wv IN (SELECT x FROM near))
      FROM marks WHERE m IN (SELECT x FROM near WHERE x <> m + 1) ORDER BY m LIMIT 2; }
  EXPIRE: { INSERT INTO RETURN SELECT wv, COUNT(*) FROM inwindow WHERE wname IN (SELECT name) GROUP BY wv; } }

CREATE WINDOW AGGREGATE tops(v INT, w REAL) : (most INT, least REAL)
{ TABLE inwindow(wv INT, ww REAL); TABLE kept(x INT, y REAL);
  INITIALIZE: ITERATE: {
    INSERT INTO kept VALUES (v, w);
    UPDATE kept SET x = x + 1 WHERE y > w;
    DELETE FROM kept WHERE x > 6;
    INSERT INTO RETURN SELECT wv, ww FROM inwindow ORDER BY wv DESC LIMIT 2;
    INSERT INTO RETURN SELECT x, y FROM kept ORDER BY y LIMIT 1 OFFSET 1; }
  EXPIRE: { INSERT INTO RETURN SELECT (SELECT wv FROM inwindow ORDER BY wv LIMIT 1), ww FROM inwindow
      ORDER BY ww DESC LIMIT 2; } }

CREATE AGGREGATE decay(Next Real) : Real
{ TABLE state(tsum Real, cnt Int);
  INITIALIZE: { INSERT INTO state VALUES (COALESCE(Next, 1), 1); INSERT INTO RETURN VALUES (Next); }
  ITERATE:    { UPDATE state SET tsum=0.9*tsum+1.1*COALESCE(Next, 2), cnt=cnt+1;
                INSERT INTO RETURN SELECT tsum/cnt FROM state; } }

CREATE AGGREGATE counts(who VARCHAR, v INT) : INT
{ TABLE seen(name VARCHAR, n INT);
  INITIALIZE: ITERATE: {
    INSERT INTO seen VALUES (who, 0) WHERE NOT EXISTS (SELECT 1 FROM seen s WHERE s.name = who) AND who IS NOT NULL;
    UPDATE seen SET n = n + 1 WHERE name = who;
    INSERT INTO RETURN SELECT n FROM seen WHERE v > 0 ORDER BY name; } }
"""

FOLDS = """
CREATE AGGREGATE sums(a INT, b REAL) : REAL
{ TABLE t(s INT, u REAL, n INT);
  INITIALIZE: { INSERT INTO t VALUES (a * 2, b, 3); INSERT INTO RETURN SELECT s / n + u FROM t; }
  ITERATE:    { UPDATE t SET s = a * 2 + s, u = u + b, n = n + 3; INSERT INTO RETURN SELECT s / n + u FROM t; } }

CREATE AGGREGATE decay_avg(a REAL) : REAL
{ TABLE t(s REAL, n INT);
  INITIALIZE: { INSERT INTO t VALUES (a, 1); INSERT INTO RETURN VALUES (a); }
  ITERATE:    { UPDATE t SET s = 0.9 * s + 1.1 * a, n = n + 1; INSERT INTO RETURN SELECT s / n FROM t; } }

CREATE AGGREGATE highest(a INT) : INT
{ TABLE t(m INT);
  INITIALIZE: { INSERT INTO t VALUES (a); }
  ITERATE:    { UPDATE t SET m = a WHERE a > m; }
  TERMINATE:  { INSERT INTO RETURN SELECT m FROM t; } }

CREATE AGGREGATE least_known(a INT) : INT
{ TABLE t(m INT);
  INITIALIZE: { INSERT INTO t VALUES (a); }
  ITERATE:    { UPDATE t SET m = LEAST(m, a); }
  TERMINATE:  { INSERT INTO RETURN SELECT m FROM t; } } IGNORE NULLS

CREATE AGGREGATE ends(a INT, b REAL) : (first INT, last REAL, n INT)
{ TABLE t(f INT, l REAL, n INT);
  INITIALIZE: { INSERT INTO t VALUES (a, b, 1); }
  ITERATE:    { UPDATE t SET l = b, n = n + 1; }
  TERMINATE:  { INSERT INTO RETURN SELECT f, l, n FROM t; } }

CREATE WINDOW AGGREGATE top(a INT) : INT
{ TABLE inwindow(w INT);
  INITIALIZE: { INSERT INTO RETURN VALUES (a); }
  ITERATE:    { DELETE FROM inwindow WHERE w < a; INSERT INTO RETURN VALUES (oldest()); } }

CREATE WINDOW AGGREGATE mean_n(a INT) : REAL
{ TABLE t(s REAL, n INT); TABLE inwindow(w INT);
  INITIALIZE: { INSERT INTO t VALUES (a, 1); INSERT INTO RETURN VALUES (a); }
  ITERATE:    { UPDATE t SET s = s + a, n = n + 1; INSERT INTO RETURN SELECT s / n FROM t; }
  EXPIRE:     { UPDATE t SET s = s - a, n = n - 1; } }
"""
