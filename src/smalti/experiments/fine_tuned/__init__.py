"""Models fine-tuned to GLUE tasks, and what becomes of them with another embedding table."""
