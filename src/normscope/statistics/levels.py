"""Numbers that every verdict uses. Loads nothing: the workflow reads them for every job."""

ALPHA = 0.05  # level of the tests inside a table
DECISIVE_P = 0.005  # two-sided p below which a comparison is decided (Benjamin et al. 2018)
# trained models below which nothing is decided over seeds: of 5 sign flips, which check the t test,
# none has a two-sided p below 2^(1 - 5) = 0.0625
FEWEST = 6
