"""shellcheck has nothing to say about the shell scripts, nor about the completion sonde prints."""

import shutil
import subprocess

from source import BUILD, ROOT, finish, scripts, skip

if not shutil.which("shellcheck"):
    skip("shellcheck is not installed")

checked = [*scripts("bash"), *scripts("/sh")]
completion = BUILD / "src/cmd/sonde.bash"
if completion.exists():
    checked.append(completion)
done = subprocess.run(["shellcheck", "-s", "bash", "-f", "gcc", *map(str, checked)], cwd=ROOT,
                      text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
finish([line.replace(f"{ROOT}/", "") for line in done.stdout.splitlines()]
       or (["shellcheck failed"] if done.returncode else []))
