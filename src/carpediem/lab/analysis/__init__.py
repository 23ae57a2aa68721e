"""Records to numbers, and the numbers of the paper beside them: pure, nothing here trains."""
