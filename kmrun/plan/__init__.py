"""Suite to cases: every axis bound, every formula evaluated, without torch and without user code."""

from kmrun.plan.evaluation import Excluded
from kmrun.plan.expansion import Expansion, expand
from kmrun.plan.selection import LeftOut, Selection, select

__all__ = ["Excluded", "Expansion", "LeftOut", "Selection", "expand", "select"]
