"""Ways to read a table in a test."""


def table(tables, start):
    """The only one of these tables whose title begins so."""
    (found,) = [one for one in tables if one.title.startswith(start)]
    return found


def rows(one, **where):
    """The rows with these values, as programs read them."""
    return [row for row in one.to_dict()["rows"] if where.items() <= row.items()]


def row(one, **where):
    """The only row with these values."""
    (found,) = rows(one, **where)
    return found
