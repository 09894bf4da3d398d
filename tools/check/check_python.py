"""Every Python file compiles, without warnings, with the system's python3."""

import warnings

from source import files, finish, relative, scripts, text_of

warnings.simplefilter("error")
faults = []
for path in sorted(set(files(".py")) | set(scripts("python3"))):
    try:
        compile(text_of(path), str(path), "exec")
    except (SyntaxError, SyntaxWarning, DeprecationWarning) as fault:
        faults.append(f"{relative(path)}: {fault}")
finish(faults)
