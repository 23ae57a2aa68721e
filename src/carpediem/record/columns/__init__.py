"""The columns that a record can hold, one a file."""
