"""``make bench``: every benchmark, one after the other."""

from benchmarks import estimator, import_tree, refresh, should_compact

if __name__ == "__main__":
    for benchmark in (should_compact, refresh, estimator, import_tree):
        print(f"== {benchmark.__doc__.strip().splitlines()[0] if benchmark.__doc__ else ''}")
        benchmark.main()
