"""Which machine jobs go to, decided before they queue: by turns, by chance, by habit, by a model."""
