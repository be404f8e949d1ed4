"""Tools of the experiments: data, delays, prods at set times, other ways to prod, costly predicates."""
