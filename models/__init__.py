"""The catalogue of causes: one mechanism a file, the file's name is the mechanism's.

A file states the claim, what it changes in the anatomy of a step with priors and their
sources, what would be seen, the cheapest probe that decides it, the change that tests
it and what it is most often confused with. `docs` fields are read by
``argus-bed hypotheses describe NAME``.
"""
