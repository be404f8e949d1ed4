-- A sample of k values of the window, with replacement. Each tuple draws a priority for each of the k places, and a place
-- has the tuple with the highest priority in the window. Priorities come from a generator in the state, so that a
-- repeated batch draws the same ones. At most 1000 places.
CREATE WINDOW AGGREGATE priority_sample(x DOUBLE, k INT) : (place INT, value DOUBLE)
{ TABLE digits(d INT);
  TABLE places(place INT);
  TABLE arrived(n INT, gone INT);
  TABLE held(place INT, number INT, value DOUBLE, priority INT);
  TABLE inwindow(wx DOUBLE, wk INT);
  INITIALIZE: {
    INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
    INSERT INTO places SELECT 100 * a.d + 10 * b.d + c.d + 1 FROM digits a, digits b, digits c
      WHERE 100 * a.d + 10 * b.d + c.d < k;
    INSERT INTO arrived VALUES (1, 0);
    INSERT INTO held SELECT place, 1, x, ((69069 + place * 40503) % 2147483648 * 1103515245 + 12345) % 2147483648
      FROM places;
    INSERT INTO RETURN SELECT place, value FROM held ORDER BY place; }
  ITERATE: {
    UPDATE arrived SET n = n + 1;
    INSERT INTO held SELECT place, n, x,
        ((n * 69069 + place * 40503 + n * n % 65537 * 7919) % 2147483648 * 1103515245 + 12345) % 2147483648
      FROM places, arrived;
    DELETE FROM held WHERE EXISTS (SELECT 1 FROM held later
      WHERE later.place = held.place AND later.number > held.number AND later.priority > held.priority);
    INSERT INTO RETURN SELECT h.place, h.value FROM held h, (SELECT place, MIN(number) AS first FROM held GROUP BY place) f
      WHERE h.place = f.place AND h.number = f.first ORDER BY h.place; }
  EXPIRE: {
    UPDATE arrived SET gone = gone + 1;
    DELETE FROM held WHERE number = (SELECT gone FROM arrived); } }
