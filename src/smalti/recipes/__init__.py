"""What is trained as a whole: a model with its tables, from data to scores."""
