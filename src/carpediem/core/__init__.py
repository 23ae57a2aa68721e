"""The paper's mathematics: pure functions and small state, on torch and numpy alone."""
