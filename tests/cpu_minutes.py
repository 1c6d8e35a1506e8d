"""Run a command, and print how many CPU minutes it and its processes took."""

import resource
import subprocess
import sys

if __name__ == "__main__":
    name, *command = sys.argv[1:]
    code = subprocess.run(command, check=False).returncode
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{name}: {(used.ru_utime + used.ru_stime) / 60:.1f} CPU minutes", flush=True)
    sys.exit(code)
