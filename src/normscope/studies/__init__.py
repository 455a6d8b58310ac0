"""One folder a study: grid, recipe, probe, tables, claims, pages, each where it has them."""
