"""What holds for all tests."""

import os

# torch's threads spin while they wait for each other. On a busy machine (CI, several runs) that steals the very
# cores they wait for: tests of numerics took ten times as long. Has to be said before torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
