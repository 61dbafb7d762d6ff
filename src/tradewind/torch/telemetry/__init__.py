"""What a training measures of itself while it runs, and where that goes."""
