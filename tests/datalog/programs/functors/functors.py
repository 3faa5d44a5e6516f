def twice(x: int) -> int:
    return 2 * x


def join(a: str, b: int) -> str:
    return f"{a}{b}"
