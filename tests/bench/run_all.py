"""Every benchmark, one after the other: `make bench`. Each prints its own table; none of them is a pass or a fail."""

import subprocess
import sys
from pathlib import Path

ORDER = (
    "bench_fidelity.py",
    "bench_orchestration.py --pairs 2 --flows 1 --duration 2",
    "bench_orchestration.py",
    "bench_scale.py",
    "bench_peers.py",
    "bench_distance.py",
    "bench_latency.py",
    "bench_levels.py",
    "bench_publish.py",
)


def main() -> None:
    folder = Path(__file__).parent
    commands = {line: [sys.executable, str(folder / line.split()[0]), *line.split()[1:]] for line in ORDER}
    codes = {line: subprocess.run(command, check=False).returncode for line, command in commands.items()}
    broken = [name for name, code in codes.items() if code != 0]
    if broken:
        sys.exit(f"did not end well: {', '.join(broken)}")


if __name__ == "__main__":
    main()
