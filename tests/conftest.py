"""What holds for all tests."""


def pytest_make_parametrize_id(val: object) -> str | None:
    """Bytes make no name of a test: a compressed file holds the time of its making, and each worker would call the
    test something else."""
    return "bytes" if isinstance(val, bytes) else None
