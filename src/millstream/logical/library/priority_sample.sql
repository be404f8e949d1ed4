-- A sample of k values of the window, with replacement. Each tuple draws a priority for each of the k places, and a place
-- has the tuple with the highest priority in the window; later ones of lower priority are held, since they may come next.
-- Priorities come from a generator in the state, so that a repeated batch draws the same ones. At most 1000 places.
CREATE WINDOW AGGREGATE priority_sample(x DOUBLE, k INT) : (place INT, value DOUBLE)
{ TABLE digits(d INT);
  TABLE arrived(n INT, gone INT, seed INT);
  TABLE places(place INT, number INT, value DOUBLE, best INT, drawn INT);
  TABLE held(place INT, number INT, value DOUBLE, priority INT);
  TABLE inwindow(wx DOUBLE, wk INT);
  INITIALIZE: {
    INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
    INSERT INTO arrived VALUES (1, 0, 0);
    INSERT INTO places SELECT 100 * a.d + 10 * b.d + c.d + 1, 1, x, 0, 0 FROM digits a, digits b, digits c
      WHERE 100 * a.d + 10 * b.d + c.d < k;
    UPDATE places SET best = ((69069 + place * 40503) % 2147483648 * 1103515245 + 12345) % 2147483648;
    INSERT INTO held SELECT place, number, value, best FROM places;
    INSERT INTO RETURN SELECT place, value FROM places; }
  ITERATE: {
    UPDATE arrived SET n = n + 1;
    UPDATE arrived SET seed = (n * 69069 + n % 65537 * (n % 65537) % 65537 * 7919) % 2147483648;
    UPDATE places SET drawn = (((SELECT seed FROM arrived) + place * 40503) % 2147483648 * 1103515245 + 12345) % 2147483648;
    DELETE FROM held WHERE EXISTS (SELECT 1 FROM places p WHERE p.place = held.place AND p.drawn >= held.priority);
    INSERT INTO held SELECT place, n, x, drawn FROM places, arrived;
    UPDATE places SET number = (SELECT n FROM arrived), value = x, best = drawn WHERE drawn >= best;
    INSERT INTO RETURN SELECT place, value FROM places; }
  EXPIRE: {
    UPDATE arrived SET gone = gone + 1;
    DELETE FROM held WHERE EXISTS (SELECT 1 FROM places p
      WHERE p.place = held.place AND p.best <= held.priority AND p.number <= (SELECT gone FROM arrived));
    UPDATE places SET best = COALESCE((SELECT MAX(h.priority) FROM held h WHERE h.place = places.place), -1)
      WHERE number <= (SELECT gone FROM arrived);
    UPDATE places SET
        number = COALESCE((SELECT h.number FROM held h WHERE h.place = places.place AND h.priority >= places.best), 0),
        value = (SELECT h.value FROM held h WHERE h.place = places.place AND h.priority >= places.best)
      WHERE number <= (SELECT gone FROM arrived); } }
