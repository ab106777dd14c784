"""The papers' tables as declarations: run, resume, print beside the papers' numbers."""

from smalti.experiments.claims import Claim, Verdict, judge
from smalti.experiments.comparisons import Between, Greatest, Least, Less, Near
from smalti.experiments.results import Result, read_results
from smalti.experiments.running import missing, run_all, run_table
from smalti.experiments.summary import state, summary
from smalti.experiments.table import Arm, Metric, Table, known_tables, table_named

__all__ = [
    "Arm",
    "Between",
    "Claim",
    "Greatest",
    "Least",
    "Less",
    "Metric",
    "Near",
    "Result",
    "Table",
    "Verdict",
    "judge",
    "known_tables",
    "missing",
    "read_results",
    "run_all",
    "run_table",
    "state",
    "summary",
    "table_named",
]
