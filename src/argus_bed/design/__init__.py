"""What a measurement would tell, and what it costs."""
