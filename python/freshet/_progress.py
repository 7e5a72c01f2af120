"""How far training is, for a terminal or a notebook."""
import contextlib
import sys


def _in_notebook():
    try:
        return get_ipython().__class__.__name__ == "ZMQInteractiveShell"  # noqa: F821 - IPython defines it
    except NameError:
        return False


def _line(now):
    parts = [f"epoch {now['epoch'] + 1}/{now['epochs']}", f"{now['rows']:,} rows", f"loss {now['loss']:.4f}"]
    if now["error_rate"] is not None:
        parts.append(f"error {100 * now['error_rate']:.2f} %")
    if now["rmse"] is not None:
        parts.append(f"RMSE {now['rmse']:.4g}")
    if now["fraction"] is not None:
        parts.insert(0, f"{100 * now['fraction']:3.0f} %")
    return "  ".join(parts)


@contextlib.contextmanager
def listener(progress):
    """What to call with each report: nothing, the user's own function, or one that shows a line."""
    if progress is None or progress is False:
        yield None
    elif callable(progress):
        yield progress
    elif _in_notebook():
        from IPython.display import display
        handle = display({"text/plain": "…"}, raw=True, display_id=True)
        yield lambda now: handle.update({"text/plain": _line(now)}, raw=True)
    else:
        yield lambda now: print("\r" + _line(now).ljust(78), end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
