"""Ask, tell, run, stop: one question from its first probe to its verdict."""
