"""Which table for which budget: candidates, their judge, their calibration, the frontier."""
