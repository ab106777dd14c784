"""Findings become one page that a person likes to look at."""

from smalti.report.comparing import compare
from smalti.report.compressed import report_compressed
from smalti.report.frontiers import report_frontier, report_study
from smalti.report.image_runs import report_run
from smalti.report.opening import make_report
from smalti.report.page import Headline, Report
from smalti.report.tables import TableSubject, report_table
from smalti.report.writing import check_page, write_page

__all__ = [
    "Headline",
    "Report",
    "TableSubject",
    "check_page",
    "compare",
    "make_report",
    "report_compressed",
    "report_frontier",
    "report_run",
    "report_study",
    "report_table",
    "write_page",
]
